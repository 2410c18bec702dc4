"""JSON bodies, honest and hostile."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.wire import decode
from tests.app.wire import cases
from tests.app.wire.bodies import (
    JSON,
    LIMITS,
    NAMES,
    endures,
    flat,
    in_base64,
    nested,
    parse,
    refusal,
    spoilt,
    value_of,
    values,
    worded,
    x,
)
from tests.app.wire.cases import Refused, X

ARRAYS = st.sampled_from(sorted(NAMES)).flatmap(
    lambda name: hnp.arrays(name, hnp.array_shapes(min_dims=1, max_dims=5, min_side=0, max_side=4))
)


WAYS = (nested, flat, in_base64)


# Honest bodies


@pytest.mark.parametrize("rest", cases.BODIES_READ, ids=list)
def test_what_stands_beside_tensors(rest: dict[str, Any]) -> None:
    cases.stands_beside(parse(rest | {"x": nested(X)}), rest)


@pytest.mark.parametrize("write", WAYS)
@pytest.mark.parametrize(("sent", "says"), cases.TENSORS_READ)
def test_tensors(sent: Any, says: dict[str, str], write: Any) -> None:
    cases.is_read(value_of({"x": write(sent, **says)}), sent)


@given(ARRAYS)
def test_any_tensor_arrives_as_it_is_nested_flat_and_in_base64(array: Any) -> None:
    for write in WAYS:
        found = value_of({"x": write(array)})
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found, array)
        assert not found.flags.writeable


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=5, max_side=4)))
def test_a_bare_list_is_float32(array: Any) -> None:
    found = value_of({"x": worded(array.tolist())})
    assert found.dtype == np.float32
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, array)


def test_a_bare_list_of_indices_is_int64() -> None:
    found = parse({"indices": [[0, 3], [-1, 2**62]]}).tensors["indices"]
    assert found.dtype == np.int64
    assert found.tolist() == [[0, 3], [-1, 2**62]]
    assert refusal(parse, {"indices": [[0, 1.0]]}).loc == ("indices", 0, 1)


def test_indices_may_name_their_dtype() -> None:
    made = {"indices": {"dtype": "int32", "shape": [2], "data": [1, 2]}}
    assert parse(made).tensors["indices"].dtype == np.int32


def test_the_three_texts() -> None:
    found = value_of('{"x": [[1, "NaN"], ["Infinity", "-Infinity"]]}')
    np.testing.assert_array_equal(found, [[1, np.nan], [np.inf, -np.inf]])


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_numbers_are_rounded_once(name: str) -> None:
    texts = ["0.1", "1e-8", "3.3333333333333335", "-0.0", "65504", "1.0009765625001", "5e-324"]
    found = value_of(f'{{"x": {{"dtype": "{name}", "shape": [7], "data": [{",".join(texts)}]}}}}')
    assert found.tobytes() == np.array([float(text) for text in texts]).astype(name).tobytes()


def test_no_axis_at_all() -> None:
    assert value_of(x(shape=[], data=[3])).shape == ()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_a_body(kind: Any) -> None:
    assert decode(kind(b'{"x": [1]}'), JSON, LIMITS).tensors["x"].tolist() == [1]


# Base64


GOOD = base64.b64encode(np.zeros(4, np.float32).tobytes()).decode()


@pytest.mark.parametrize(
    "data",
    [
        "",
        "AAAA",
        GOOD[:-1],
        GOOD[:-4],
        GOOD + "AAAA",
        GOOD + "=",
        " " + GOOD[1:],
        "\n" + GOOD[1:],
        GOOD[:-1] + "\0",
        "-" + GOOD[1:],
        "_" + GOOD[1:],
        "é" + GOOD[1:],
        "\ud800" + GOOD[1:],
        "=" * len(GOOD),
        GOOD[:4] + "====" + GOOD[8:],
    ],
    ids=ascii,
)
def test_base64_is_strict_and_of_the_right_length(data: str) -> None:
    assert len(GOOD) == 24
    issue = refusal(parse, x(data=data))
    assert issue.loc == ("x", "data")
    wrong = next((at for at, sign in enumerate(data) if sign not in "A="), data.find("="))
    told = f"{data[wrong : wrong + 1]!a} at character {wrong}"
    assert issue.got == (told if len(data) == len(GOOD) else f"{len(data)} characters")


@pytest.mark.parametrize(("end", "got"), [("A=", "17 bytes"), ("AA", "18 bytes")])
def test_as_many_characters_may_be_too_many_bytes(end: str, got: str) -> None:
    issue = refusal(parse, x(data=GOOD[:-2] + end))
    assert (issue.loc, issue.got) == (("x", "data"), got)


def test_a_length_that_does_not_fit_is_told_before_decoding() -> None:
    issue = refusal(parse, x(shape=[2**31 - 1, 2**20], data=GOOD))
    assert issue.expected.startswith(f"{4 * (2**31 - 1) * 2**20} bytes")


# Parts of a tensor


@pytest.mark.parametrize(
    "case",
    [
        *cases.TENSORS_REFUSED,
        Refused({"shape": [10**400]}, ("shape", 0), 10**400, cases.LENGTH),
    ],
    ids=repr,
)
def test_no_other_tensor(case: Refused) -> None:
    case.agrees(refusal(parse, {"x": nested(X, **case.given)}), ("x",))


def test_another_part_is_named() -> None:
    assert refusal(parse, x(order="C")).loc == ("x", "order")


def test_arrays_of_msgpack_numpy_are_no_json() -> None:
    made = {"nd": True, "type": "<f4", "kind": "", "shape": [1], "data": "AAAAAA=="}
    assert refusal(parse, {"x": made}).loc == ("x", "dtype")


# Bodies that are not what they say


@pytest.mark.parametrize("case", cases.BODIES_REFUSED, ids=repr)
def test_no_other_body(case: Refused) -> None:
    case.agrees(refusal(parse, json.dumps(case.given)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"}",
        b"{}{}",
        b"{} x",
        b"{}\0",
        b"\0{}",
        b"{'x': 1}",
        b'{"x": 1,}',
        b'{"x": [1,]}',
        b'{"x": [1 2]}',
        b'{"x" 1}',
        b'{"x": 01}',
        b'{"x": +1}',
        b'{"x": .5}',
        b'{"x": 1.}',
        b'{"x": 0x10}',
        b'{"x": 1e}',
        b'{"x": tru}',
        b'{"x": nan}',
        b'{"x": [1] // c\n}',
        b"{1: 2}",
        b"{null: 2}",
        b'{"x',
        b'{"x": "\n"}',
        b'{"x": "\0"}',
        b'{"x": "\\x41"}',
        b'{"x": "\\u12"}',
        # Not UTF-8, or marked as something else.
        b'\xef\xbb\xbf{"x": [1]}',
        '{"x": [1]}'.encode("utf-16"),
        '{"x": [1]}'.encode("utf-16-le"),
        '{"x": [1]}'.encode("utf-32"),
        b'{"x\xff": 1}',
        b'{"\xed\xa0\x80": 1}',
        b'{"\xc0\xaf": 1}',
    ],
    ids=lambda body: ascii(body[:30]),
)
def test_what_is_not_json(body: bytes) -> None:
    assert refusal(parse, body).loc == ()


def test_a_byte_order_mark_is_named() -> None:
    error = refusal(parse, b'\xef\xbb\xbf{"x": [1]}')
    assert error.msg == "a byte order mark stands before the JSON"


def test_gzip_is_told_so() -> None:
    error = refusal(parse, gzip.compress(b"{}"))
    assert error.msg == "this looks like gzip, and compressed bodies are not supported yet"
    assert error.expected == "JSON"


@pytest.mark.parametrize("count", [0, 1, 15, 16, 70_000])
def test_msgpack_by_the_name_of_json_is_told_so(count: int) -> None:
    error = refusal(parse, msgpack.packb({str(n): n for n in range(count)}))
    assert error.msg == "this looks like msgpack, and Content-Type says that it is JSON"
    assert error.expected == "JSON, or Content-Type: application/vnd.msgpack"


def test_other_bytes_than_utf_8_are_not_taken_for_msgpack() -> None:
    for body in ("{}".encode("utf-16"), b"\xff", b'{"x\xff": 1}', b"\x90"):
        assert refusal(parse, body).msg == "the body is not valid UTF-8"


def test_base64_with_line_breaks_is_told_to_have_none() -> None:
    issue = refusal(parse, x(data=base64.encodebytes(b"\0" * 48).decode(), shape=[12]))
    assert issue.expected.endswith("64 characters of base64, padded, without line breaks")


def test_a_typed_array_that_became_a_map_is_told_what_data_is() -> None:
    sent = x(data={str(n): 0 for n in range(5000)}, shape=[5000])
    assert "outside tensor data, which is bin in msgpack, a list or base64 in JSON" in (
        refusal(parse, sent).expected
    )


def test_the_place_of_a_mistake_is_told() -> None:
    assert "line 2, column 8" in refusal(parse, '{"x":\n  [1, 2').msg


def test_a_repeated_key_is_named() -> None:
    assert "'stride'" in refusal(parse, '{"config": {"stride": 1, "stride": 1}}').msg


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        (r'{"config": {"a": "\ud800"}}', ("config", "a")),
        (r'{"config": {"a": ["\udfff x"]}}', ("config", "a", 0)),
        (r'{"config": {"\ud800": 1}}', ("config",)),
        (r'{"\ud800": 1}', ()),
        (r'{"wants": ["\ud83d"]}', ("wants", 0)),
    ],
)
def test_half_of_a_surrogate_pair_is_no_text(body: str, loc: tuple[Any, ...]) -> None:
    assert refusal(parse, body).loc == loc


def test_a_whole_surrogate_pair_is() -> None:
    assert parse(r'{"config": {"a": "\ud83d\ude00"}}').config == {"a": "😀"}


# Whatever comes


@given(st.binary(max_size=100), st.text(max_size=100))
def test_any_bytes(raw: bytes, text: str) -> None:
    endures(parse, raw)
    endures(parse, b'{"x": ' + raw + b"}")
    endures(parse, '{"wants": ' + text + "}")


def test_any_byte_of_a_good_body_changed_or_cut() -> None:
    good = json.dumps({"config": {"a": [1, 2.5, "t"]}, **x(), "wants": ["dx"]}).encode()
    for body in spoilt(good, b'\x00"[]{},:-9.eN\\\xff '):
        endures(parse, body)


VALUES = values(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.sampled_from([*NAMES, "NaN", "Infinity", "AAAA", "O"])
)  # fmt: skip
PARTS = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from([*NAMES, "O"]) | VALUES,
        "shape": st.lists(st.integers(-1, 3), max_size=3) | VALUES,
        "data": st.lists(VALUES, max_size=4) | VALUES,
    }
)


@given(st.dictionaries(st.sampled_from(["x", "weight", "indices", "wants"]), VALUES | PARTS))
def test_any_values(body: dict[str, Any]) -> None:
    endures(parse, json.dumps(body))
