"""msgpack bodies, honest and hostile."""

from __future__ import annotations

import datetime
import gzip
import pickle
import tracemalloc
from dataclasses import replace
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.wire.faults import MOST_SHOWN, MOST_STEPS
from engine.errors import InvalidValue, Loc
from tests.app.limits import decode_limits
from tests.app.wire import cases
from tests.app.wire.bodies import (
    LIMITS,
    NAMES,
    endures,
    numpy_tensor,
    refusal,
    spoilt,
    tensor,
    unpack,
    values,
)
from tests.app.wire.cases import Refused, X, same

ARRAYS = st.sampled_from(sorted(NAMES)).flatmap(
    lambda name: hnp.arrays(name, hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
)


BOTH = pytest.mark.parametrize(
    ("write", "names"),
    [(tensor, {}), (numpy_tensor, {"dtype": "type"})],
    ids=["plain", "msgpack-numpy"],
)
"""How a tensor is written, and what its parts are called there."""


AS_BIN = "plain values, texts in UTF-8, and the data of tensors as bin"


def renamed(parts: dict[str, Any], names: dict[Any, str]) -> dict[str, Any]:
    return {names.get(part, part): value for part, value in parts.items()}


def packed(length: int, code: str = "I") -> bytes:
    return length.to_bytes({"B": 1, "H": 2, "I": 4}[code], "big")


# Honest bodies


@pytest.mark.parametrize("rest", cases.BODIES_READ, ids=list)
def test_what_stands_beside_tensors(rest: dict[str, Any]) -> None:
    cases.stands_beside(unpack(rest | {"x": tensor(X)}), rest)


def test_an_empty_map_is_a_request_without_anything() -> None:
    request = unpack(b"\x80")
    assert (request.config, request.wants, request.extra) == (None, None, ())
    assert not request.tensors


@given(ARRAYS)
def test_any_tensor_arrives_as_it_is_in_both_encodings(array: Any) -> None:
    for made in (tensor(array), numpy_tensor(array)):
        assert same(unpack({"x": made}).tensors["x"], array)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_a_body(kind: Any) -> None:
    request = unpack(kind(msgpack.packb({"x": tensor(X), "dy": tensor(X)})))
    assert same(request.tensors["dy"], X)


def test_tensors_are_read_only_aligned_views() -> None:
    array = unpack({"x": tensor(np.ones((4, 4)))}).tensors["x"]
    assert not array.flags.writeable
    assert array.flags.aligned
    assert array.flags.c_contiguous
    assert array.base is not None


@BOTH
@pytest.mark.parametrize(("sent", "says"), cases.TENSORS_READ)
def test_tensors(sent: Any, says: dict[str, str], write: Any, names: dict[str, str]) -> None:
    cases.is_read(unpack({"x": write(sent, **renamed(says, names))}).tensors["x"], sent)


def test_msgpack_numpy_with_text_keys_and_a_binary_type() -> None:
    as_text = {key.decode(): value for key, value in numpy_tensor(X, kind="").items()}
    for made in (as_text, numpy_tensor(X, type=b"<f4"), as_text | {"type": b"<f4"}):
        assert same(unpack({"x": made}).tensors["x"], X)


def test_the_bytes_that_the_msgpack_numpy_package_writes() -> None:
    # 66 bytes for the array of 2 by 3 below, recorded from release 0.4.8.
    made = bytes.fromhex(
        "85c4026e64c3c40474797065a33c6634c4046b696e64c400c4057368617065920203c40464617461c418"
    )
    made += X.tobytes()
    assert len(made) == 66
    assert same(unpack(b"\x81\xa1x" + made).tensors["x"], X)


# Tensors that contradict themselves


@BOTH
@pytest.mark.parametrize(
    "case",
    [
        *cases.TENSORS_REFUSED,
        Refused({"dtype": b"f4" * 400}, ("dtype",), "binary data", cases.DTYPE),
        Refused({"shape": [b"\x02", 3]}, ("shape", 0), "binary data", cases.INTEGER),
        Refused({"shape": b"\x02\x03"}, ("shape",), "binary data", cases.SHAPE),
        Refused({"data": "text"}, ("data",), "text", "bin"),
        Refused({"data": [1, 2, 3, 4, 5, 6]}, ("data",), "a list", "bin"),
    ],
    ids=repr,
)
def test_no_other_tensor(case: Refused, write: Any, names: dict[Any, str]) -> None:
    issue = refusal(unpack, {"x": write(X, **renamed(case.given, names))})
    replace(case, loc=tuple(names.get(step, step) for step in case.loc)).agrees(issue, ("x",))


def test_bfloat16_is_named_as_not_there_yet() -> None:
    for dtype in ("bfloat16", "torch.bfloat16"):
        assert "not supported yet" in refusal(unpack, {"x": tensor(X, dtype=dtype)}).msg


@pytest.mark.parametrize(
    ("dtype", "meant"),
    [
        ("torch.float32", "float32"),
        ("<class 'numpy.float64'>", "float64"),
        ("Float32", "float32"),
        ("double", "float64"),
        ("f32", "float32"),
        ("FP16", "float16"),
        ("jnp.uint8", "uint8"),
    ],
)
def test_how_libraries_write_an_element_type_is_told_ours(dtype: str, meant: str) -> None:
    assert refusal(unpack, {"x": tensor(X, dtype=dtype)}).msg.endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize("dtype", ["float", "int", "uint16", "complex64", "", "torch.", "bfloat16"])
def test_of_an_element_type_that_may_be_several_nothing_is_told(dtype: str) -> None:
    assert "did you mean" not in refusal(unpack, {"x": tensor(X, dtype=dtype)}).msg


def test_a_byte_order_that_only_the_sender_knows_is_told_from_other_types() -> None:
    for made in (tensor(X, dtype="=f4"), numpy_tensor(X, type="=f4")):
        assert "byte order" in refusal(unpack, {"x": made}).msg
    assert "byte order" not in refusal(unpack, {"x": tensor(X, dtype="=c8")}).msg


@pytest.mark.parametrize("shape", [[], [5], [2, 4], [0], [0, 6], [7], [2**31 - 1, 2**20], [1] * 8])
def test_bytes_fit_the_shape_exactly(shape: list[int]) -> None:
    issue = refusal(unpack, {"x": tensor(X, shape=shape)})
    assert issue.loc == ("x", "data")
    assert issue.expected == f"{4 * int(np.prod(shape, dtype=object))} bytes"
    assert issue.got == "24 bytes"


@pytest.mark.parametrize("data", [b"", X.tobytes()[:-1], X.tobytes() + b"\0", X.tobytes() * 2])
def test_no_byte_more_or_less(data: bytes) -> None:
    for made in (tensor(X, data=data), numpy_tensor(X, data=data)):
        assert refusal(unpack, {"x": made}).loc == ("x", "data")


def test_a_missing_kind_is_named() -> None:
    assert refusal(unpack, {"x": numpy_tensor(X, kind=...)}).loc == ("x", "kind")


def test_another_part_is_named() -> None:
    assert refusal(unpack, {"x": tensor(X, order="C")}).loc == ("x", "order")
    made = {**tensor(X), "nd": True}
    assert refusal(unpack, {"x": made}).loc[0] == "x"
    made = {key.decode(): value for key, value in numpy_tensor(X, order="C").items()}
    assert refusal(unpack, {"x": made}).loc == ("x", "order")


class _Trap:
    """Sets a mark if it is ever unpickled."""

    sprung = False

    def __reduce__(self) -> tuple[Any, ...]:
        return (setattr, (_Trap, "sprung", True))


@pytest.mark.parametrize(
    "kind", [b"O", b"V", "O", "V", b"\0", b"OO", None, 0, False, [], b"O" * 99]
)
def test_kinds_with_objects_are_refused_and_never_unpickled(kind: Any) -> None:
    made = numpy_tensor(X, kind=kind, data=pickle.dumps(_Trap()))
    assert refusal(unpack, {"x": made}).loc == ("x", "kind")
    assert not _Trap.sprung


@pytest.mark.parametrize("shape", [[1], [3], [2**40]])
@pytest.mark.parametrize("kind", [b"", b"V", b"O"])
@pytest.mark.parametrize("type_", ["O", [["a", "O"]], [["a", "<f4"]], "V0", "S0", "|S0", "U0"])
def test_pointers_and_weightless_types_are_refused(type_: Any, kind: bytes, shape: Any) -> None:
    made = numpy_tensor(X, type=type_, kind=kind, shape=shape, data=b"\x41" * 24)
    assert refusal(unpack, {"x": made}).loc[0] == "x"


@pytest.mark.parametrize("nd", [False, 1, 0, None, "true", b"\x01", [True]])
def test_scalars_of_msgpack_numpy_are_refused(nd: Any) -> None:
    assert refusal(unpack, {"x": numpy_tensor(X, nd=nd)}).loc == ("x", "nd")
    scalar = {b"nd": False, b"type": "<f4", b"data": b"\0\0\0\0"}
    issue = refusal(unpack, {"x": scalar})
    assert (issue.loc, issue.msg) == (("x", "nd"), "only arrays are read, not scalars")
    assert refusal(unpack, {"x": {b"complex": True, b"data": "1j"}}).loc == ("x",)


# Bodies that are not what they say


@pytest.mark.parametrize(
    "case",
    [
        *cases.BODIES_REFUSED,
        Refused(b"x", (), "binary data", "a map"),
        Refused({"weight": b"x"}, ("weight",), "binary data"),
        Refused({"weight": []}, ("weight",), "a list"),
        Refused({"weight": [1.0, 2.0]}, ("weight",), "a list"),
    ],
    ids=repr,
)
def test_no_other_body(case: Refused) -> None:
    case.agrees(refusal(unpack, msgpack.packb(case.given)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x81\xa1x\xc1",
        b"\x81",
        b"\x81\xa1",
        b"\x81\xa1x",
        b"\x82\xa1x\x01",
        b"\x80\x00",
        b"\x80\x80",
        b"\x80" + b"\0" * 1000,
        b"\x80\xc1",
        # Keys that are not text.
        b"\x81\x01\x01",
        b"\x81\xc0\x01",
        b"\x81\x90\x01",
        b"\x81\x80\x01",
        b"\x81\xcb" + b"\0" * 8 + b"\x01",
        b"\x81\xc4\x01x\x01",
        b"\x81\xc4\x06config\x80",
        b"\x81\xc4\x02\xff\xfe\x01",
        # Text that is not UTF-8: cut, overlong, half of a surrogate pair, beyond Unicode.
        b"\x81\xa1\xff\x01",
        b"\x81\xa1\xc3\x01",
        b"\x81\xa2\xc0\xaf\x01",
        b"\x81\xa3\xed\xa0\x80\x01",
        b"\x81\xa4\xf4\x90\x80\x80\x01",
        b"\x81\xa6config\x81\xa1p\xa1\xff",
        # Lengths that lie.
        b"\xdf\xff\xff\xff\xff",
        b"\xde\xff\xff",
        b"\xdd\x7f\xff\xff\xff",
        b"\x81\xa1x\xdd\xff\xff\xff\xff",
        b"\x81\xa1x\xc6\xff\xff\xff\xff",
        b"\x81\xa1x\xdb\xff\xff\xff\xff",
        b"\x81\xa1x\xc9\xff\xff\xff\xff\x01",
        b"\x81\xd9\xff",
        # Extension types, timestamps among them, wherever they are.
        b"\x81\xa1x\xd4\x01\x00",
        b"\x81\xa1x\xd5\x01\x00\x00",
        b"\x81\xa1x\xd6\xff\x00\x00\x00\x01",
        b"\x81\xa1x\xd7\xff" + b"\0" * 8,
        b"\x81\xa1x\xc7\x0c\xff" + b"\0" * 12,
        b"\x81\xa1x\xc7\x00\x01",
        b"\x81\xa1x\xc7\x00\xff",
        b"\x81\xa1x\xc8\x00\x01\x01\x00",
        b"\x81\xa5other\xc7\x00\x05",
        b"\x81\xc7\x00\x05\x01",
        b"\xd4\x05\x00",
    ],
    ids=lambda body: body[:14].hex(" "),
)
def test_what_is_not_msgpack_as_we_read_it(body: bytes) -> None:
    assert refusal(unpack, body).loc == ()


def test_a_timestamp_of_the_package_is_refused() -> None:
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    body = msgpack.packb({"config": {"stride": now}}, datetime=True)
    error = refusal(unpack, body)
    assert "extension" in error.msg
    assert error.expected == AS_BIN


@pytest.mark.parametrize(
    ("size", "msg", "expected", "got"),
    [
        (4, "a text is not valid UTF-8", AS_BIN, "a text of 4 bytes"),
        (300, "a text is not valid UTF-8", AS_BIN, "a text of 300 bytes"),
        (
            70_000,
            "a text is too long to be read here",
            "at most 1024 bytes; the data of tensors is bin",
            "70000 bytes",
        ),
    ],
)
def test_data_of_an_encoder_without_bin(size: int, msg: str, expected: str, got: str) -> None:
    sent = {"x": {"dtype": "uint8", "shape": [size], "data": b"\xff" * size}}
    error = refusal(unpack, msgpack.packb(sent, use_bin_type=False))
    assert (error.msg, error.expected, error.got) == (msg, expected, got)


def test_data_that_an_encoder_was_not_told_to_be_bytes() -> None:
    error = refusal(unpack, {"x": {"dtype": "uint8", "shape": [5000], "data": [0] * 5000}})
    assert error.msg == "a list is too long to be read here"
    assert error.expected == "at most 1024 entries; the data of tensors is bin"
    assert error.got == "5000 entries"


def test_many_short_lists_are_told_what_data_is() -> None:
    data = [[0] * 40] * 40
    error = refusal(unpack, {"x": {"dtype": "uint8", "shape": [40, 40], "data": data}})
    assert "outside tensor data, which is bin in msgpack" in error.expected


@pytest.mark.parametrize(
    ("key", "got"),
    [(1, 1), (1.5, 1.5), (True, True), (None, "null"), (b"1", b"1"), (b"data", b"data")],
)
def test_keys_that_are_no_text_are_refused_in_our_words(key: object, got: object) -> None:
    issue = refusal(unpack, msgpack.packb({"config": {"a": [0, {key: 1}]}}))
    told = issue.loc, issue.msg, issue.expected, issue.got
    assert told == (("config", "a", 1), "the keys of a map are text", "str", got)


def test_a_map_is_no_key() -> None:
    assert refusal(unpack, b"\x81\xa6config\x81\x82\xa1a\x01\xa1a\x02\x03").got == "a map"
    assert refusal(unpack, b"\x81\xa6config\x81\x80\x03").got == "a map"


def test_the_path_to_a_wrong_key_is_bounded() -> None:
    deep = refusal(unpack, b"\x91" * 500 + b"\x81\x01\x01").loc
    assert deep == (0,) * MOST_STEPS
    long = "a" * LIMITS.max_text
    assert refusal(unpack, msgpack.packb({long: {1: 1}})).loc == ("a" * MOST_SHOWN,)


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        (b"\x82\xa1x\x01\xa1x\x01", ("x",)),
        (b"\x81\xa6config\x82\xa1a\x01\xa1a\x02", ("config", "a")),
        (b"\x81\xa5other\x92\x01\x82\xa1a\x01\xa1a\x02", ("other", 1, "a")),
        (b"\x81\xa1x\x82\xc4\x02nd\xc3\xa2nd\xc3", ("x", "nd")),
        (b"\x81\xa1x\x82\xc4\x02nd\xc3\xc4\x02nd\xc3", ("x", "nd")),
        # The first of several; one that is in what stands twice; and one that no map has.
        (b"\x82\xa1a\x82\xa1b\x01\xa1b\x01\xa1x\x82\xa1c\x01\xa1c\x01", ("a", "b")),
        (b"\x82\xa1x\x82\xa1a\x01\xa1a\x01\xa1x\x01", ("x",)),
        (b"\x81\x82\xa1a\x01\xa1a\x02\x03", ()),
    ],
)
def test_a_repeated_key_is_named(body: bytes, loc: Loc) -> None:
    issue = refusal(unpack, body)
    assert issue.loc == loc
    if loc:
        assert issue.msg == f"the key {loc[-1]!r} appears twice in one map"


def test_trailing_bytes_are_counted() -> None:
    assert refusal(unpack, b"\x80" + b"\0" * 7).got == "7 bytes"
    assert refusal(unpack, b"\xcb\x40\x5e\xc0" + b"\0" * 6).got == "1 byte"  # 123.0, no brace


def test_gzip_is_told_so() -> None:
    error = refusal(unpack, gzip.compress(b"\x80"))
    assert error.msg == "this looks like gzip, and compressed bodies are not supported yet"
    assert error.expected == "msgpack"
    assert refusal(unpack, b"\x1f\x00").got == "1 byte"


@pytest.mark.parametrize("body", [b'{"x": [[[1]]]}', b"{}", b"[1, 2]"])
def test_json_by_the_name_of_msgpack_is_told_so(body: bytes) -> None:
    error = refusal(unpack, body)
    assert error.msg == "this looks like JSON, and Content-Type says that it is msgpack"
    assert error.expected == "msgpack, or Content-Type: application/json"


@pytest.mark.parametrize(
    "path", [("config",), ("config", "stride"), ("wants",), ("config", "p", 1)]
)
def test_binary_data_stands_only_in_tensors(path: tuple[Any, ...]) -> None:
    value: Any = b"abc"
    for step in reversed(path):
        value = [0, value] if step == 1 else {step: value}
    assert refusal(unpack, value).loc == path


@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_value_of_numpy_beside_tensors_is_called_so(shape: tuple[int, ...]) -> None:
    made = numpy_tensor(np.ones(shape, np.int64), **({} if shape else {"nd": False, "shape": ...}))
    issue = refusal(unpack, {"config": {"stride": [made]}})
    assert issue.loc == ("config", "stride", 0)
    assert "NumPy" in issue.msg
    assert ".item()" in issue.expected


# Bombs


@pytest.mark.parametrize("depth", [LIMITS.max_depth, 500, 1020, 1023, 5000, 10**6])
@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a"])
@pytest.mark.parametrize("where", [b"\xa6config", b"\xa5wants", b"\xa1x"])
def test_deep_nesting(depth: int, opening: bytes, where: bytes) -> None:
    body = b"\x81" + where + b"\x81\xa1a" + opening * depth + b"\x90"
    assert refusal(unpack, body).msg


@pytest.mark.parametrize(
    ("head", "item"),
    [(b"\xdd", each) for each in (b"\x90", b"\x80", b"\xc0", b"\x91\x01", b"\xa0", b"\x81\xa0\xc0")]
    + [(b"\xdf", b"\xa0\xc0")],
)
@pytest.mark.parametrize("where", [b"config", b"x", b"wants", b"other"])
def test_a_million_small_things_are_not_built(head: bytes, item: bytes, where: bytes) -> None:
    many = head + packed(10**6) + item * 10**6
    body = b"\x81" + bytes([0xA0 + len(where)]) + where + many
    tracemalloc.start()
    try:
        assert refusal(unpack, body).loc == ()
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_many_lists_each_within_the_limit_are_counted_together() -> None:
    full = b"\xdc" + packed(1000, "H") + b"\x90" * 1000
    body = b"\x81\xa5other\xdc" + packed(1000, "H") + full * 1000
    tracemalloc.start()
    try:
        assert "too many values" in refusal(unpack, body).msg
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("case", cases.LONG_TEXTS, ids=repr)
def test_long_texts(case: Refused) -> None:
    assert refusal(unpack, case.given).loc == ()


def test_the_rank_is_a_limit() -> None:
    made = {"x": tensor(np.ones((1,) * 4, np.float32))}
    assert unpack(made, decode_limits(max_rank=4)).tensors["x"].ndim == 4
    with pytest.raises(InvalidValue) as caught:
        unpack(made, decode_limits(max_rank=3))
    assert caught.value.issues[0].loc == ("x", "shape")


# Whatever comes


@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    endures(unpack, body)
    endures(unpack, b"\x81\xa1x" + body)
    endures(unpack, b"\x81\xa6wants" + body)


@pytest.mark.parametrize("made", [tensor, numpy_tensor])
def test_any_byte_of_a_good_body_changed_or_cut(made: Any) -> None:
    good = msgpack.packb({"config": {"a": [1, 2.5, "t"]}, "x": made(X), "wants": ["dx"]})
    for body in spoilt(good, b"\x00\x7f\x80\x90\xc0\xc1\xc4\xc7\xd4\xdc\xdf\xff"):
        endures(unpack, body)


VALUES = values(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text()
    | st.binary() | st.sampled_from([*NAMES, *NAMES.values(), "O", b"", b"O", True])
)  # fmt: skip
PARTS = st.dictionaries(
    st.sampled_from(["dtype", "shape", "data", "nd", "type", "kind"]), VALUES, max_size=6
)


@given(st.dictionaries(st.sampled_from(["x", "weight", "config", "wants", "zz"]), VALUES | PARTS))
def test_any_values(body: dict[str, Any]) -> None:
    if body.get("config") is not None and not isinstance(body["config"], dict):
        del body["config"]
    endures(unpack, msgpack.packb(body))
