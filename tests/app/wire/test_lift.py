"""Large binary values are left where they are, and nothing else about a body changes."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import MalformedBody
from app.wire import lift as module
from app.wire.lift import LIFTED_BYTES, lift
from tests.app.wire.bodies import numpy_tensor, refusal, tensor, unpack

LARGE = np.arange(LIFTED_BYTES, dtype="<f4").reshape(4, -1)


def plain() -> Any:
    leaf = (
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**64 - 1)
        | st.floats(allow_nan=False)
        | st.text(max_size=300)
        | st.binary(max_size=70_000)
    )
    return st.recursive(leaf, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=30)


def restored(skeleton: Any, lifted: Any) -> Any:
    return msgpack.unpackb(
        bytes(skeleton),
        ext_hook=lambda _, data: bytes(lifted[int.from_bytes(data, "big")].data),
    )


@given(plain())
def test_what_is_lifted_can_be_put_back(value: Any) -> None:
    body = msgpack.packb(value)
    skeleton, lifted = lift(body)
    assert restored(skeleton, lifted) == value
    assert all(len(each.data) >= LIFTED_BYTES for each in lifted)
    assert len(skeleton) + sum(each.saved for each in lifted) == len(body)


@given(st.binary(max_size=200), st.integers(0, 200))
def test_nonsense_stays_what_it_is(noise: bytes, cut: int) -> None:
    body = msgpack.packb({"x": b"\0" * LIFTED_BYTES}) + noise
    for given_ in (body, body[: len(body) - cut], noise):
        skeleton, lifted = lift(given_)
        assert skeleton == given_ or len(lifted) >= 1


@pytest.mark.parametrize("make", [tensor, numpy_tensor])
def test_a_large_tensor_is_a_view_on_the_body(make: Any) -> None:
    body = bytearray(msgpack.packb({"x": make(LARGE)}))
    found = unpack(body).tensors["x"]
    assert found.tobytes() == LARGE.tobytes()
    assert np.shares_memory(found, np.frombuffer(body, np.uint8))
    assert not found.flags.writeable


def test_a_clients_extension_values_are_refused_beside_lifted_values() -> None:
    forged = msgpack.ExtType(module.CODE, b"\0\0")
    for body in ({"x": tensor(LARGE), "weight": forged}, {"weight": forged}):
        assert "extension" in str(refusal(unpack, (body)))


@pytest.mark.parametrize("before", [None, {"x": b"\0" * LIFTED_BYTES}])
@pytest.mark.parametrize(
    "behind", [b"\0" * LIFTED_BYTES, b"\0" * 40, [1, b"\0" * (2 * LIFTED_BYTES)]]
)
def test_what_follows_the_end_is_counted_with_what_was_lifted(before: Any, behind: Any) -> None:
    more = msgpack.packb(behind)
    with pytest.raises(MalformedBody) as caught:
        unpack(msgpack.packb(before) + more)
    assert caught.value.issues[0].got == f"{len(more)} bytes"


def test_a_large_value_in_the_wrong_place_is_called_what_it_is() -> None:
    large = b"\0" * LIFTED_BYTES
    assert "binary" in str(refusal(unpack, ({"config": {"stride": large}})))
    assert "binary" in str(refusal(unpack, ({"x": large})))
    with pytest.raises(MalformedBody):
        unpack(msgpack.packb({large: 1}, use_bin_type=True))


def test_a_body_of_many_values_is_left_to_the_unpacker() -> None:
    body = msgpack.packb([b"\0" * LIFTED_BYTES, *[1] * module.MAX_TOKENS])
    assert lift(body) == (body, ())
