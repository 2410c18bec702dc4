"""Answers in every encoding, to the byte."""

from __future__ import annotations

import base64
import json
import math
import tracemalloc
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.wire import decode, encode, encode_map
from app.wire.write import _plain
from tests.app.wire.bodies import BASE64, JSON, LIMITS, MSGPACK, NAMES, NUMPY

INFO = {
    "operation": "conv",
    "action": "forward",
    "algorithm": "direct",
    "padding": [[1, 2]],
    "batch": {"requests": 2, "rows": 5},
}
X = np.arange(6, dtype=np.float32).reshape(2, 3)
OUTPUT_DTYPES = ("float16", "float32", "float64", "int64")
ARRAYS = st.sampled_from(OUTPUT_DTYPES).flatmap(
    lambda name: hnp.arrays(name, hnp.array_shapes(min_dims=1, max_dims=5, min_side=0, max_side=4))
)


def strict_json(body: bytes | memoryview) -> Any:
    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    return json.loads(str(body, "utf-8"), parse_constant=refuse)


def returned(array: Any, exchange: Any) -> Any:
    """The array that a client gets, read as we read our own requests."""
    body = encode({"x": array}, INFO, exchange)
    request = decode(body, exchange_of(exchange), LIMITS)
    assert request.extra == ("info",)
    return request.tensors["x"]


def exchange_of(exchange: Any) -> Any:
    return MSGPACK if exchange.response == "msgpack" else JSON


# To the byte


def test_msgpack() -> None:
    head = bytes.fromhex("82a17983a56474797065a7666c6f61743332a57368617065920203a464617461c418")
    assert encode({"y": X}, {}, MSGPACK) == head + X.tobytes() + b"\xa4info\x80"


def test_msgpack_numpy_as_its_package_writes_it() -> None:
    # 66 bytes for the array of 2 by 3, recorded from release 0.4.8.
    head = bytes.fromhex(
        "85c4026e64c3c40474797065a33c6634c4046b696e64c400c4057368617065920203c40464617461c418"
    )
    assert len(head + X.tobytes()) == 66
    assert encode({"y": X}, {}, NUMPY) == b"\x82\xa1y" + head + X.tobytes() + b"\xa4info\x80"


@pytest.mark.parametrize(("name", "short"), NAMES.items())
def test_msgpack_numpy_types(name: str, short: str) -> None:
    (array, _) = msgpack.unpackb(encode({"y": np.zeros(1, name)}, {}, NUMPY), raw=True).values()
    assert array[b"type"] == (b"|" if short[1] == "1" else b"<") + short.encode()
    assert list(array) == [b"nd", b"type", b"kind", b"shape", b"data"]


def test_json() -> None:
    expected = (
        '{"y":{"dtype":"float32","shape":[2,3],"data":[[0.0,1.0,2.0],[3.0,4.0,5.0]]},"info":{}}'
    )
    assert encode({"y": X}, {}, JSON) == expected.encode()


def test_base64() -> None:
    data = base64.b64encode(X.tobytes()).decode()
    expected = f'{{"y":{{"dtype":"float32","shape":[2,3],"data":"{data}"}},"info":{{}}}}'
    assert encode({"y": X}, {}, BASE64) == expected.encode()


@pytest.mark.parametrize(
    ("length", "head"),
    [
        (0, "c400"),
        (1, "c401"),
        (255, "c4ff"),
        (256, "c50100"),
        (65535, "c5ffff"),
        (65536, "c600010000"),
    ],
)
@pytest.mark.parametrize("exchange", [MSGPACK, NUMPY])
def test_lengths_of_binary_data_at_their_edges(length: int, head: str, exchange: Any) -> None:
    data = np.arange(length).astype(np.uint8)
    body = encode({"y": data}, {}, exchange)
    assert bytes.fromhex("a464617461" if exchange is MSGPACK else "c40464617461") in body
    assert bytes.fromhex(head) + data.tobytes() + b"\xa4info" in body


class _Large(np.ndarray[Any, Any]):
    """An array that says it has 4 GiB."""

    nbytes = 2**32


def test_a_tensor_that_msgpack_cannot_hold() -> None:
    array = np.zeros(1, np.uint8).view(_Large)
    with pytest.raises(OverflowError, match="4294967296 bytes"):
        list(_plain(array))


# Round trips


@given(ARRAYS)
@pytest.mark.parametrize("exchange", [MSGPACK, NUMPY, BASE64], ids=lambda each: each.tensors)
def test_bytes_come_back_as_they_were(exchange: Any, array: Any) -> None:
    found = returned(array, exchange)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@given(ARRAYS)
def test_numbers_come_back_as_they_were(array: Any) -> None:
    found = returned(array, JSON)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)
    # A NaN has lost its sign; zero has not.
    numbers = ~np.isnan(array)
    assert found[numbers].tobytes() == array[numbers].tobytes()


@given(ARRAYS)
def test_json_is_always_valid_and_nested_like_the_shape(array: Any) -> None:
    answer = strict_json(encode({"y": array}, INFO, JSON))
    assert answer["info"] == INFO
    assert answer["y"]["shape"] == list(array.shape)
    level: Any = answer["y"]["data"]
    for length in array.shape:
        assert isinstance(level, list)
        assert len(level) == length
        if length == 0:
            break
        level = level[0]


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_the_three_texts(name: str) -> None:
    values = [[np.nan, 1.5, -np.inf], [np.inf, -np.nan, -0.0], [np.inf, np.inf, np.nan]]
    data = strict_json(encode({"y": np.array(values, name)}, {}, JSON))["y"]["data"]
    assert data[0] == ["NaN", 1.5, "-Infinity"]
    assert data[1][:2] == ["Infinity", "NaN"]
    assert math.copysign(1, data[1][2]) == -1
    assert data[2] == ["Infinity", "Infinity", "NaN"]


def test_texts_at_both_ends_and_alone() -> None:
    for values in ([np.nan], [np.nan, 0], [0, np.nan], [np.inf] * 4):
        array = np.array(values, np.float32)
        np.testing.assert_array_equal(returned(array, JSON), array)


def test_the_fewest_digits() -> None:
    array = np.array([0.1, 1e20, 16777216, 1 / 3], np.float32)
    data = bytes(encode({"y": array}, {}, JSON)).partition(b'"data":')[2]
    assert data.startswith(b"[0.1,1e+20,16777216.0,0.33333334]")


def test_indices_stay_integers() -> None:
    array = np.array([[-1, 2**62]])
    assert strict_json(encode({"indices": array}, {}, JSON))["indices"] == {
        "dtype": "int64",
        "shape": [1, 2],
        "data": [[-1, 2**62]],
    }


@pytest.mark.parametrize("exchange", [MSGPACK, NUMPY, JSON, BASE64], ids=lambda each: each.tensors)
def test_arrays_of_any_layout(exchange: Any) -> None:
    base = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    for array in (
        base.transpose(0, 2, 3, 1),
        base[:, ::-1, ::2],
        np.asfortranarray(base),
        base.astype(">f4"),
        base[0, 0, 0, 1:1],
        np.broadcast_to(np.float32(3), (2, 2)),
        np.zeros((0, 3, 4), np.float32).transpose(2, 1, 0),
    ):
        found = returned(array, exchange)
        assert found.shape == array.shape
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("exchange", [MSGPACK, NUMPY, JSON, BASE64], ids=lambda each: each.tensors)
def test_a_whole_answer(exchange: Any) -> None:
    outputs: dict[str, np.ndarray] = {
        "dx": X,
        "dweight": X.astype(np.float64),
        "y": np.zeros((0, 2, 2), np.float16),
    }
    body = encode(outputs, INFO, exchange)
    answer = msgpack.unpackb(body) if exchange.response == "msgpack" else strict_json(body)
    assert list(answer) == ["dx", "dweight", "y", "info"]
    assert answer["info"] == INFO


@pytest.mark.parametrize("exchange", [MSGPACK, NUMPY])
def test_tensor_data_is_copied_once(exchange: Any) -> None:
    array = np.zeros((64, 128, 128), np.float32)
    encode({"y": array}, INFO, exchange)
    tracemalloc.start()
    try:
        body = encode({"y": array, "dx": array}, INFO, exchange)
        assert tracemalloc.get_traced_memory()[1] < len(body) + 2**16
    finally:
        tracemalloc.stop()


def test_an_array_may_be_read_only() -> None:
    array = X.copy()
    array.flags.writeable = False
    for exchange in (MSGPACK, NUMPY, JSON, BASE64):
        np.testing.assert_array_equal(returned(array, exchange), X)


# Maps without tensors


PLAIN = {
    "shapes": {"y": (1, 2), "x": [3]},
    "padding": [[0, 1]],
    "receptive_field": [3],
    "algorithm": "direct",
    "none": None,
    "true": True,
    "half": 0.5,
    "é": "ü",
}


def test_a_plain_map() -> None:
    expected = json.loads(json.dumps(PLAIN))
    assert msgpack.unpackb(encode_map(PLAIN, MSGPACK)) == expected
    assert strict_json(encode_map(PLAIN, JSON)) == expected


def test_a_plain_map_is_never_written_as_json_that_is_none() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encode_map({"seconds": float("nan")}, JSON)


def test_counts_beyond_64_bits() -> None:
    flops = 3**60
    assert strict_json(encode_map({"flops": flops}, JSON)) == {"flops": flops}
    assert msgpack.unpackb(encode_map({"flops": flops}, MSGPACK)) == {"flops": float(flops)}
    for edge in (2**64 - 1, -(2**63)):
        assert msgpack.unpackb(encode_map({"n": edge}, MSGPACK)) == {"n": edge}


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, np.float32(1), np.zeros(2)])
@pytest.mark.parametrize("exchange", [MSGPACK, JSON])
def test_what_is_not_plain_is_our_mistake(value: Any, exchange: Any) -> None:
    with pytest.raises(TypeError):
        encode_map({"value": value}, exchange)
