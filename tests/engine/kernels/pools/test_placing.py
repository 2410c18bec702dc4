import numpy as np
import pytest

import engine
from engine.arena import Arena
from engine.kernels.pools.placing import scatter_indices

SHAPE = {"input_shape": [2, 3, 5, 4]}


def one_by_one(indices: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """The gradient of planes of 5 by 4, in float64, added up in Python."""
    dx = np.zeros((*indices.shape[:2], 20))
    for place, where in np.ndenumerate(indices):
        if where >= 0:
            dx[(*place[:2], where)] += dy[place]
    return dx.reshape(*indices.shape[:2], 5, 4)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("lowest", [-1, 0])
@pytest.mark.parametrize("arena", [False, True])
def test_numbers_are_added_where_indices_say_in_either_layout(
    last: bool, lowest: int, arena: bool
) -> None:
    rng = np.random.default_rng(7)
    indices = rng.integers(lowest, 20, (2, 3, 4, 6))
    dy = rng.integers(-9, 9, indices.shape).astype(np.float32)
    want = one_by_one(indices, dy)
    dx = np.zeros((2, 3, 5, 4), np.float32)
    if last:
        dx = np.zeros((2, 5, 4, 3), np.float32).transpose(0, 3, 1, 2)
    scatter_indices(indices, dy, dx, Arena() if arena else None)
    np.testing.assert_array_equal(dx, want)


def test_indices_that_repeat_get_the_sum_and_minus_one_nothing() -> None:
    indices = np.zeros((2, 3, 2, 2), np.int64)
    indices[0, 0] = 7
    indices[1, 2, 1, 1] = -1
    dy = np.ones((2, 3, 2, 2), np.float32)
    dx = engine.backward("max_pool", {"kernel": 2, **SHAPE}, indices=indices, dy=dy)["dx"]
    np.testing.assert_array_equal(dx, one_by_one(indices, dy))


@pytest.mark.parametrize("layout", ["NCW", "NWC"])
def test_of_many_indices_that_repeat_the_last_stays(layout: str) -> None:
    """More of them than are looked at together."""
    shape = (2, 3, 100_000)
    indices = np.random.default_rng(11).integers(0, 4, shape)
    x = np.arange(indices.size, dtype=np.float64).reshape(shape)
    want = [
        [plane[own == place].max() for place in range(4)]
        for own, plane in zip(indices.reshape(6, -1), x.reshape(6, -1), strict=True)
    ]
    if layout == "NWC":
        indices, x = np.moveaxis(indices, 1, -1), np.moveaxis(x, 1, -1)
    config = {"output_size": 4, "layout": layout}
    y = engine.forward("max_unpool", config, x=x, indices=indices)["y"]
    y = y if layout == "NCW" else np.moveaxis(y, -1, 1)
    np.testing.assert_array_equal(y.reshape(6, 4), want)


@pytest.mark.parametrize("layout", ["NCW", "NWC"])
def test_a_plane_may_be_one_number(layout: str) -> None:
    """Of which no stride tells whether channels come last."""
    dy = np.arange(6.0).reshape((2, 3, 1) if layout == "NCW" else (2, 1, 3))
    indices = np.zeros((2, 3, 4), np.int64)
    indices[0, 1, 2] = -1
    want = np.where(indices < 0, 0, dy.reshape(2, 3, 1))
    if layout == "NWC":
        indices, want = np.moveaxis(indices, 1, -1), np.moveaxis(want, 1, -1)
    config = {"output_size": 1, "layout": layout}
    dx = engine.backward("max_unpool", config, indices=indices, dy=dy)["dx"]
    np.testing.assert_array_equal(dx, want)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_every_nan_of_a_gradient_has_the_same_bits(layout: str) -> None:
    indices = np.zeros((2, 3, 2, 2), np.int64)
    dy = np.ones((2, 3, 2, 2), np.float32)
    dy[0, 0, 0] = np.array([0xFFC12345, 0x7FC00001], np.uint32).view(np.float32)
    dy[1, 1] = np.array([[np.inf, -np.inf], [1, 1]])
    shape = [2, 3, 5, 4]
    if layout == "NHWC":
        indices, dy = np.moveaxis(indices, 1, -1), np.moveaxis(dy, 1, -1)
        shape = [2, 5, 4, 3]
    config = {"kernel": 2, "layout": layout, "input_shape": shape}
    dx = engine.backward("max_pool", config, indices=indices, dy=dy)["dx"]
    nans = dx[np.isnan(dx)].view(np.uint32)
    assert nans.tolist() == [np.array(np.nan, np.float32).view(np.uint32)] * 2


@pytest.mark.parametrize("dtype", ["int8", "int32", ">i8"])
def test_any_integers_are_indices(dtype: str) -> None:
    indices = np.random.default_rng(3).integers(-1, 20, (2, 3, 2, 2)).astype(dtype)
    dy = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
    dx = engine.backward("max_pool", {"kernel": 2, **SHAPE}, indices=indices, dy=dy)["dx"]
    np.testing.assert_array_equal(dx, one_by_one(indices, dy))


@pytest.mark.parametrize(
    ("dtype", "wrong"), [("i8", 20), ("i8", -2), ("i8", 2**40), ("i8", -(2**63)), ("i1", -3)]
)
def test_an_index_outside_its_plane_is_named(dtype: str, wrong: int) -> None:
    indices = np.zeros((2, 3, 2, 2), dtype)
    indices[1, 2, 0, 1] = wrong
    dy = np.ones((2, 3, 2, 2), np.float32)
    with pytest.raises(engine.EngineError) as raised:
        engine.backward("max_pool", {"kernel": 2, **SHAPE}, indices=indices, dy=dy)
    (error,) = raised.value.issues
    assert error.loc == ("indices", "data", 1, 2, 0, 1)
    assert error.got == wrong
