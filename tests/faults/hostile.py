"""Requests that nobody in their right mind would send, and the status that each must get.

Each stands for a way in which a service of this kind was broken before, or could be: decoders that
trust, shapes that lie, arithmetic that overflows, numbers that are no numbers, headers that
contradict each other. They are well-formed HTTP; `bare` has what is not.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from tests.app.wire.bodies import numpy_tensor, tensor

MSGPACK = "application/vnd.msgpack"
JSON = "application/json"

HUGE = 2**40
"""No layer has so many of anything."""


@dataclass(frozen=True)
class Hostile:
    """One request and its answer.

    Attributes:
        name: of the test.
        status: that it must get.
        slug: the problem's, where more than the status is promised.
        loc: the start of the first error's path, where it must name a field.
    """

    name: str
    status: int
    path: str = "/v1/conv/forward"
    body: bytes = b""
    slug: str | None = None
    loc: tuple[str | int, ...] = ()
    method: str = "POST"
    media: str | None = MSGPACK
    headers: dict[str, str] = field(default_factory=dict)


X = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
W = np.ones((1, 1, 2, 2), np.float32)
LAYER: dict[str, Any] = {"x": tensor(X), "weight": tensor(W)}
POOL = "/v1/max_pool/forward"


def packed(**parts: Any) -> bytes:
    """A body in msgpack."""
    made: bytes = msgpack.packb(parts)
    return made


def conv(
    config: Any, status: int, name: str, loc: tuple[str | int, ...] = (), **more: Any
) -> Hostile:
    """A convolution with an odd config."""
    return Hostile(f"conv {name}", status, body=packed(config=config, **LAYER), loc=loc, **more)


def with_x(x: Any, status: int, name: str, **more: Any) -> Hostile:
    """A convolution of an odd x."""
    return Hostile(f"x {name}", status, body=packed(x=x, weight=tensor(W)), **more)


def pool(
    config: Any, status: int, name: str, loc: tuple[str | int, ...] = (), **more: Any
) -> Hostile:
    """A pooling with an odd config."""
    body = packed(config=config, x=tensor(X))
    return Hostile(f"pool {name}", status, POOL, body, loc=loc, **more)


def said(text: str | bytes, status: int, name: str, path: str = POOL, **more: Any) -> Hostile:
    """A body in JSON."""
    body = text if isinstance(text, bytes) else text.encode()
    return Hostile(f"json {name}", status, path, body, media=JSON, **more)


def _other(operation: str, config: Any, status: int, name: str, **tensors: NDArray[Any]) -> Hostile:
    action = "backward" if "dy" in tensors else "forward"
    body = packed(config=config, **{key: tensor(array) for key, array in tensors.items()})
    return Hostile(f"{operation} {name}", status, f"/v1/{operation}/{action}", body)


def _changed(**changes: Any) -> dict[str, Any]:
    return tensor(X, **changes)


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


_PAIR = msgpack.packb("x") + msgpack.packb(tensor(X))

FRAMING = [
    Hostile("empty body", 400),
    Hostile("never used byte", 400, body=b"\xc1"),
    Hostile("nil", 400, body=b"\xc0"),
    Hostile("a list", 400, body=msgpack.packb([1, 2])),
    Hostile("text", 400, body=msgpack.packb("x")),
    Hostile("cut short", 400, body=packed(**LAYER)[:-1]),
    Hostile("trailing byte", 400, body=packed(**LAYER) + b"\xc0"),
    Hostile("two values", 400, body=packed(**LAYER) * 2),
    Hostile("json called msgpack", 400, body=b'{"x": [[[1]]]}'),
    Hostile("map of 4 G entries", 400, body=b"\xdf\xff\xff\xff\xff"),
    Hostile("list of 4 G entries", 400, body=b"\x81\xa1x\xdd\xff\xff\xff\xff"),
    Hostile("bin of 4 GB", 400, body=b"\x81\xa1x\xc6\xff\xff\xff\xff"),
    Hostile("text of 4 GB", 400, body=b"\x81\xdb\xff\xff\xff\xff"),
    Hostile("a million empty lists", 400, body=b"\x81\xa1x\xdd\x00\x0f\x42\x40" + b"\x90" * 10**6),
    Hostile("a million empty maps", 400, body=b"\x81\xa1x\xdd\x00\x0f\x42\x40" + b"\x80" * 10**6),
    Hostile("512 deep", 400, body=b"\x81\xa1x" + b"\x91" * 512 + b"\xc0"),
    Hostile("100000 deep", 400, body=b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0"),
    Hostile("extension type", 400, body=packed(x=msgpack.ExtType(1, b"abcd"))),
    Hostile("timestamp", 400, body=packed(x=msgpack.Timestamp(1))),
    Hostile("duplicate key", 400, body=b"\x82" + _PAIR + _PAIR),
    Hostile("duplicate config field", 400, body=b"\x81\xa6config\x82\xa6stride\x01\xa6stride\x02"),
    Hostile("integer key", 400, body=msgpack.packb({1: 2})),
    Hostile("binary key", 400, body=msgpack.packb({b"x": 2})),
    Hostile("invalid utf-8", 400, body=b"\x81\xa2\xff\xfe\xc0"),
    Hostile("half a surrogate", 400, body=b"\x81\xa3\xed\xa0\x80\xc0"),
    Hostile("unknown key", 422, body=packed(**LAYER, gadget=1), slug="unknown-field"),
    Hostile("key of a thousand letters", 400, body=packed(**LAYER, **{"k" * 5000: 1})),
    Hostile("no tensors", 422, body=b"\x80", slug="missing-field"),
    Hostile("no weight", 422, body=packed(x=tensor(X)), slug="missing-field", loc=("weight",)),
    Hostile("pickle as body", 400, body=b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os."),
]

TENSORS = [
    with_x(numpy_tensor(X, kind=b"O", data=b"cos\nsystem\n(S'true'\ntR."), 400, "pickled"),
    with_x(numpy_tensor(X, kind=b"V", type=[["a", "<f4"]]), 400, "structured"),
    with_x(numpy_tensor(X, type="O"), 400, "object pointers"),
    with_x(numpy_tensor(X, type="|O8"), 400, "object pointers by size"),
    with_x(numpy_tensor(X, type="V0", shape=[2**60], data=b""), 400, "void of 2^60"),
    with_x(numpy_tensor(X, type="S0", shape=[2**60], data=b""), 400, "text of 2^60"),
    with_x(numpy_tensor(X, type="<M8[s]"), 400, "dates"),
    with_x(numpy_tensor(X, type="<c8"), 400, "complex"),
    with_x(numpy_tensor(X, nd=False), 400, "scalar"),
    with_x(numpy_tensor(X, shape=[-1]), 400, "msgpack-numpy negative axis"),
    with_x(numpy_tensor(X, more=1), 400, "msgpack-numpy with another field"),
    with_x({b"complex": True, b"data": "1+2j"}, 400, "python complex"),
    with_x(_changed(dtype="bfloat16"), 400, "bfloat16"),
    with_x(_changed(dtype="float128"), 400, "float128"),
    with_x(_changed(dtype="object"), 400, "object"),
    with_x(_changed(dtype="bool"), 400, "bool"),
    with_x(_changed(dtype="f4,f4"), 400, "record dtype"),
    with_x(_changed(dtype="(2,)f4"), 400, "sub-array dtype"),
    with_x(_changed(dtype=4), 400, "dtype a number"),
    with_x(_changed(dtype=["float32"]), 400, "dtype a list"),
    with_x(_changed(dtype=None), 400, "dtype null"),
    with_x(_changed(dtype="float32\0"), 400, "dtype with a NUL"),
    with_x(_changed(shape=[1, 1, 4, -4]), 400, "negative axis"),
    with_x(_changed(shape=[-1, -1, 4, 4]), 400, "two negative axes"),
    with_x(_changed(shape=[1, 1, 4, 5]), 400, "too few bytes"),
    with_x(_changed(shape=[1, 1, 4, 3]), 400, "too many bytes"),
    with_x(_changed(shape=[1, 1, 4, 4.0]), 400, "axis a float"),
    with_x(_changed(shape=[True, True, 4, 4]), 400, "axis a boolean"),
    with_x(_changed(shape="1144"), 400, "shape a text"),
    with_x(_changed(shape=16), 400, "shape a number"),
    with_x(_changed(shape=[1] * 33), 422, "33 axes", slug="invalid-value", loc=("x", "shape")),
    with_x(tensor(X.reshape([1] * 7 + [4, 4])), 422, "rank 9", slug="invalid-value", loc=("x", "shape")),
    with_x(numpy_tensor(X.reshape([1] * 7 + [4, 4])), 422, "msgpack-numpy rank 9", slug="invalid-value"),
    with_x(_changed(shape=[2**32, 2**32], data=b""), 400, "product overflows to 0"),
    with_x(_changed(shape=[2**62, 4, 2**62], data=b""), 400, "axis of 2^62"),
    with_x(_changed(shape=[0, 2**31 - 1, 2**31 - 1, 2**31 - 1], data=b""), 400, "empty and huge"),
    with_x(_changed(data="text"), 400, "data a text"),
    with_x(_changed(data=[1.0] * 16), 400, "data a list"),
    with_x(_changed(data=None), 400, "data null"),
    with_x({"dtype": "float32", "shape": [1]}, 400, "no data"),
    with_x(_changed(strides=[0, 0, 0, 0]), 400, "with strides"),
    with_x(7, 400, "a number"),
    with_x(b"\0" * 64, 400, "bare bytes"),
    with_x(tensor(X.reshape(16)), 422, "rank 1", slug="shape-mismatch"),
    with_x(tensor(X.reshape(4, 4)), 422, "rank 2", slug="shape-mismatch"),
    with_x(tensor(X.reshape(1, 1, 1, 1, 4, 4)), 422, "rank 6", slug="shape-mismatch"),
    with_x(_changed(shape=[], data=X.tobytes()[:4]), 422, "rank 0"),
    with_x(tensor(X.reshape(1, 4, 2, 2)), 422, "channels that do not fit"),
    with_x(tensor(np.zeros((1, 0, 4, 4), np.float32)), 422, "no channels"),
    with_x(tensor(np.zeros((1, 1, 0, 4), np.float32)), 422, "no rows"),
    with_x(tensor(X.astype(np.float64)), 422, "dtypes differ", slug="dtype-mismatch"),
    with_x(tensor(X[:, :, :1, :1]), 422, "smaller than the kernel", slug="empty-output"),
    Hostile("integer weight", 422, body=packed(x=tensor(X), weight=tensor(W.astype(np.int64)))),
    Hostile("empty weight", 422, body=packed(x=tensor(X), weight=tensor(W[:0]))),
    Hostile(
        "bias too long", 422, body=packed(**LAYER, bias=tensor(np.ones(2, np.float32))), loc=("bias",)
    ),
    Hostile("indices for conv", 422, body=packed(**LAYER, indices=tensor(np.zeros(1, np.int64)))),
    Hostile("dy for forward", 422, body=packed(**LAYER, dy=tensor(X))),
]  # fmt: skip

CONFIGS = [
    conv([], 422, "config a list", ("config",)),
    conv("same", 422, "config a text", ("config",)),
    conv(7, 422, "config a number", ("config",)),
    conv({"paddding": 1}, 422, "misspelt", ("config", "paddding"), slug="unknown-field"),
    conv({"__class__": 1}, 422, "dunder", ("config", "__class__"), slug="unknown-field"),
    conv({"stride": 0}, 422, "stride 0", ("config", "stride")),
    conv({"stride": -1}, 422, "stride -1", ("config", "stride")),
    conv({"stride": True}, 422, "stride true", ("config", "stride")),
    conv({"stride": 1.0}, 422, "stride 1.0", ("config", "stride")),
    conv({"stride": "1"}, 422, "stride a text", ("config", "stride")),
    conv({"stride": None}, 422, "stride null", ("config", "stride")),
    conv({"stride": [1]}, 422, "stride too short", ("config", "stride")),
    conv({"stride": [1, 1, 1]}, 422, "stride too long", ("config", "stride")),
    conv({"stride": [1, True]}, 422, "stride with a boolean", ("config", "stride")),
    conv({"stride": []}, 422, "stride empty", ("config", "stride")),
    conv({"stride": {"h": 1}}, 422, "stride a map", ("config", "stride")),
    conv({"dilation": 0}, 422, "dilation 0", ("config", "dilation")),
    conv({"dilation": HUGE}, 422, "dilation huge"),
    conv({"dilation": 2**63 - 1}, 422, "dilation 2^63-1"),
    conv({"padding": -1}, 422, "padding -1", ("config", "padding")),
    conv({"padding": HUGE}, 422, "padding huge"),
    conv({"padding": 2**63 - 1}, 422, "padding 2^63-1"),
    conv({"padding": 2**64 - 1}, 422, "padding 2^64-1"),
    conv({"padding": [[0, HUGE], [0, 0]]}, 422, "padding huge on one side"),
    conv({"padding": float("nan")}, 422, "padding NaN", ("config", "padding")),
    conv({"padding": float("inf")}, 422, "padding infinite", ("config", "padding")),
    conv({"padding": "SAME"}, 422, "padding in capitals", ("config", "padding")),
    conv({"padding": [[1, 2, 3], [1, 2]]}, 422, "padding ragged", ("config", "padding")),
    conv({"padding": "causal"}, 422, "causal in 2-D", ("config", "padding")),
    conv({"padding": 5, "padding_mode": "reflect"}, 422, "reflects beyond the input"),
    conv({"padding": 9, "padding_mode": "circular"}, 422, "wraps more than once"),
    conv({"padding_mode": "mirror"}, 422, "padding_mode unknown", ("config", "padding_mode")),
    conv({"groups": 0}, 422, "groups 0", ("config", "groups")),
    conv({"groups": -1}, 422, "groups -1", ("config", "groups")),
    conv({"groups": 3}, 422, "groups do not divide"),
    conv({"groups": HUGE}, 422, "groups huge"),
    conv({"layout": "HWCN"}, 422, "layout unknown", ("config", "layout")),
    conv({"layout": "NCW"}, 422, "layout of another rank", ("config", "layout")),
    conv({"layout": "N" * 1000}, 422, "layout long", ("config", "layout")),
    conv({"weight_layout": "OOHW"}, 422, "weight_layout twice a letter"),
    conv({"activation": "relu6"}, 422, "activation unknown", ("config", "activation")),
    conv({"activation": {"name": "elu", "alpha": float("nan")}}, 422, "alpha NaN"),
    conv({"activation": {"name": "elu", "beta": 1}}, 422, "activation with a stranger"),
    conv({"activation": {}}, 422, "activation without a name", ("config", "activation")),
    conv({"algorithm": "../../etc/passwd"}, 422, "algorithm a path", ("config", "algorithm")),
    conv({"flip_kernel": 1}, 422, "flip_kernel 1", ("config", "flip_kernel")),
    conv({"flip_kernel": "true"}, 422, "flip_kernel a text", ("config", "flip_kernel")),
    conv({"grad_reduction": "max"}, 422, "grad_reduction unknown", ("config", "grad_reduction")),
    conv({"stride": _nested(15)}, 422, "stride deep"),
    conv({"stride": _nested(200)}, 400, "stride deeper"),
    conv({"stride": b"\x01"}, 400, "stride binary"),
    conv({f"field{i}": i for i in range(5000)}, 400, "5000 fields"),
    conv({"stride": list(range(5000))}, 400, "stride of 5000"),
    conv({"output_padding": 1}, 422, "output_padding of conv", ("config", "output_padding")),
    pool({}, 422, "without a kernel", ("config", "kernel"), slug="missing-field"),
    pool({"kernel": 0}, 422, "kernel 0", ("config", "kernel")),
    pool({"kernel": HUGE}, 422, "kernel huge"),
    pool({"kernel": 2**63, "padding": 2**62}, 422, "kernel and padding past int64"),
    pool({"kernel": 2, "stride": 99}, 200, "stride larger than the input"),
    pool({"kernel": 2, "stride": HUGE}, 422, "stride huge", ("config", "stride")),
    pool({"kernel": 2, "padding": HUGE}, 422, "padding huge"),
    pool({"kernel": 2, "dilation": HUGE}, 422, "dilation huge"),
    pool({"kernel": 10**6, "padding": 10**6}, 422, "windows of a million squared"),
    pool({"kernel": 2, "ties": "last"}, 422, "ties unknown", ("config", "ties")),
    pool({"kernel": 2, "ceil_mode": 0}, 422, "ceil_mode 0", ("config", "ceil_mode")),
    pool({"kernel": 2, "groups": 1}, 422, "groups", ("config", "groups"), slug="unknown-field"),
    _other("avg_pool", {"kernel": 2, "divisor_override": 0}, 422, "divisor 0", x=X),
    _other("avg_pool", {"kernel": 2, "divisor_override": 1.5}, 422, "divisor 1.5", x=X),
    _other("avg_pool", {"kernel": 2, "count_include_pad": None}, 422, "count null", x=X),
    _other("lp_pool", {"kernel": 2, "p": 0}, 422, "p 0", x=X),
    _other("lp_pool", {"kernel": 2, "p": float("nan")}, 422, "p NaN", x=X),
    _other("lp_pool", {"kernel": 2, "p": float("inf")}, 422, "p infinite", x=X),
    _other("lp_pool", {"kernel": 2, "p": True}, 422, "p true", x=X),
    _other("adaptive_avg_pool", {"output_size": HUGE}, 422, "output_size huge", x=X),
    _other("adaptive_avg_pool", {"output_size": 0}, 422, "output_size 0", x=X),
    _other("adaptive_avg_pool", {"output_size": -1}, 422, "output_size -1", x=X),
    _other("adaptive_avg_pool", {"output_size": [10**5, 10**5]}, 422, "output of 40 GB", x=X),
    _other("adaptive_max_pool", {}, 422, "without output_size", x=X),
    _other("conv_transpose", {"stride": HUGE}, 422, "stride huge", x=X, weight=W),
    _other("conv_transpose", {"output_padding": 1}, 422, "output_padding too large", x=X, weight=W),
    _other("conv_transpose", {"output_size": [99, 99]}, 422, "output_size too far", x=X, weight=W),
    _other("conv_transpose", {"output_size": [5]}, 422, "output_size too short", x=X, weight=W),
    _other("conv_transpose", {"padding": 3}, 422, "padded away", x=X, weight=W),
    _other("conv_transpose", {"padding_mode": "zeros"}, 422, "padding_mode", x=X, weight=W),
    _other(
        "max_unpool", {"output_size": [4, 4]}, 422, "index past the end",
        x=X[..., :1, :2], indices=np.array([[[[3, 16]]]]),
    ),
    _other(
        "max_unpool", {"output_size": [4, 4]}, 422, "index -2",
        x=X[..., :1, :2], indices=np.array([[[[3, -2]]]]),
    ),
    _other(
        "max_unpool", {"output_size": [4, 4]}, 422, "index of 2^63-1",
        x=X[..., :1, :2], indices=np.array([[[[3, 2**63 - 1]]]]),
    ),
    _other(
        "max_unpool", {"output_size": [10**6, 10**6]}, 422, "a plane of 4 TB",
        x=X[..., :1, :2], indices=np.array([[[[3, 1]]]]),
    ),
    _other(
        "max_unpool", {"output_size": [4, 4]}, 422, "indices in float",
        x=X[..., :1, :2], indices=np.ones((1, 1, 1, 2), np.float32),
    ),
    _other("max_unpool", {"output_size": [4, 4]}, 422, "without indices", x=X),
    _other("activation", {}, 422, "without a name", x=X),
    _other("activation", {"name": ["relu"]}, 422, "name a list", x=X),
    _other("activation", {"name": "relu", "alpha": 1}, 422, "parameter of another", x=X),
    _other("activation", {"name": "affine", "slope": "2"}, 422, "slope a text", x=X),
    _other("conv", {}, 422, "dy of another shape", x=X, weight=W, dy=X),
    _other("max_pool", {"kernel": 2}, 422, "dy of another shape", x=X, dy=X),
    Hostile(
        "max_pool input_shape huge", 422, "/v1/max_pool/backward",
        packed(
            config={"kernel": 2, "input_shape": [1, 1, 10**9, 10**9]},
            indices=tensor(np.zeros((1, 1, 2, 2), np.int64)), dy=tensor(X[..., :2, :2]),
        ),
    ),
    Hostile(
        "max_pool index of a plane elsewhere", 422, "/v1/max_pool/backward",
        packed(
            config={"kernel": 2, "input_shape": [1, 1, 4, 4]},
            indices=tensor(np.full((1, 1, 2, 2), 10**12)), dy=tensor(X[..., :2, :2]),
        ),
    ),
    Hostile("wants a text", 422, "/v1/conv/backward", packed(**LAYER, dy=tensor(X), wants="dx")),
    Hostile("wants unknown", 422, "/v1/conv/backward", packed(**LAYER, dy=tensor(X), wants=["dz"])),
    Hostile("wants nothing", 422, "/v1/conv/backward", packed(**LAYER, dy=tensor(X), wants=[])),
    Hostile(
        "wants twice the same", 200, "/v1/conv/backward",
        packed(**LAYER, dy=tensor(X[..., :3, :3]), wants=["dx", "dx"]),
    ),
    Hostile("backward without dy", 422, "/v1/conv/backward", packed(**LAYER), loc=("dy",)),
    Hostile(
        "wants of forward", 422, body=packed(**LAYER, wants=["y"]),
    ),
    Hostile("plan of negative shapes", 422, "/v1/conv/plan",
            packed(shapes={"x": [1, 1, -4], "weight": [1, 1, 2]})),
    Hostile("plan of rank 9", 422, "/v1/conv/plan", slug="invalid-value", loc=("shapes", "x"),
            body=packed(shapes={"x": [1] * 9, "weight": [1, 1, 3, 3]})),
    Hostile("plan of 2^31 squared", 422, "/v1/conv/plan",
            packed(shapes={"x": [1, 1, 2**31 - 1, 2**31 - 1], "weight": [1, 1, 3, 3]})),
    Hostile("plan with shapes a list", 422, "/v1/conv/plan", packed(shapes=[[1, 1, 4]])),
    Hostile("plan of an unknown dtype", 422, "/v1/conv/plan",
            packed(shapes={"x": [1, 1, 4], "weight": [1, 1, 2]}, dtype="float8")),
    Hostile("plan with tensors", 422, "/v1/conv/plan", packed(**LAYER)),
    Hostile("plan that forward would refuse", 422, "/v1/conv/plan",
            packed(shapes={"x": [1, 1, 2], "weight": [1, 1, 3]}), slug="empty-output"),
]  # fmt: skip

TEXTS = [
    said("", 400, "empty"),
    said("{", 400, "cut short"),
    said('{"x": [[[1, 2]]], }', 400, "trailing comma"),
    said('{"x": [[[1]]]} {}', 400, "two values"),
    said("null", 400, "null"),
    said("[1, 2]", 400, "a list"),
    said(b'\xff\xfe{"x": 1}', 400, "utf-16"),
    said(b'\xef\xbb\xbf{"x": [[[1]]]}', 400, "byte order mark"),
    said('{"x": [[[NaN]]], "config": {"kernel": 1}}', 400, "bare NaN"),
    said('{"x": [[[Infinity]]], "config": {"kernel": 1}}', 400, "bare Infinity"),
    said('{"x": [[["nan"]]], "config": {"kernel": 1}}', 400, "nan in small letters"),
    said('{"x": [[["1"]]], "config": {"kernel": 1}}', 400, "number as text"),
    said('{"x": [[[true]]], "config": {"kernel": 1}}', 400, "boolean as number"),
    said('{"x": [[[null]]], "config": {"kernel": 1}}', 400, "null as number"),
    said('{"x": [[[1, 2], [3]]], "config": {"kernel": 1}}', 400, "ragged"),
    said('{"x": [[[1, [2]]]], "config": {"kernel": 1}}', 400, "list among numbers"),
    said('{"x": [[[{"a": 1}]]], "config": {"kernel": 1}}', 400, "map among numbers"),
    said('{"x": [[[1e999]]], "config": {"kernel": 1}}', 400, "1e999"),
    said('{"x": [[[%s]]], "config": {"kernel": 1}}' % ("9" * 5000), 400, "5000 digits"),
    said('{"x": [[[1]]], "x": [[[2]]], "config": {"kernel": 1}}', 400, "duplicate key"),
    said('{"config": {"kernel": 1, "kernel": 2}, "x": [[[1]]]}', 400, "duplicate field"),
    said('{"x": ' + "[" * 9 + "1" + "]" * 9 + "}", 422, "rank 9", slug="invalid-value", loc=("x",)),
    said('{"x": {"dtype": "f4", "shape": [1], "data": ' + "[" * 9 + "1" + "]" * 9 + "}}", 400,
         "rank 9 beside a shape", loc=("x", "data")),
    said('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", 400, "100000 deep"),
    said('{"x": ' + '{"a":' * 5000 + "1" + "}" * 5001, 400, "5000 maps deep"),
    said('{"x": [' + "[]," * 1_100_000 + "[]]}", 422, "a million empty lists"),
    said('{"\\ud800": 1}', 400, "half a surrogate"),
    said('{"x": {"dtype": "float32", "shape": [1, 1, 1], "data": "AAA"}}', 400, "base64 cut"),
    said('{"x": {"dtype": "float32", "shape": [1, 1, 1], "data": "!!!!!!=="}}', 400, "no base64"),
    said('{"x": {"dtype": "float32", "shape": [1, 1, 3], "data": [1, 2]}}', 400, "too few numbers"),
    said('{"x": {"dtype": "uint8", "shape": [1, 1, 1], "data": [256]}}', 400, "256 in uint8"),
    said('{"x": {"dtype": "uint8", "shape": [1, 1, 1], "data": [1.5]}}', 400, "1.5 in uint8"),
    said('{"x": {"dtype": "int64", "shape": [1, 1, 1], "data": [1e30]}}', 400, "1e30 in int64"),
    said('{"x": {"dtype": "float32", "shape": [99999, 99999, 99999], "data": "AAAA"}}', 400, "lie"),
    said('{"x": [[[1, 2]]], "config": {"kernel": 1e400}}', 422, "kernel 1e400"),
    said('{"x": [[[1, 2]]], "config": {"kernel": 2.0}}', 422, "kernel 2.0"),
    said('{"x": [[[1, 2]]], "config": {"kernel": 1' + "0" * 300 + "}}", 422, "kernel 10^300"),
    said('{"x": [[[1, 2]]], "config": {"kernel": "\\u0000"}}', 422, "kernel NUL"),
    said('{"x": [[[1, 2]]], "config": {"kernel": 1, "кernel": 1}}', 422, "homoglyph"),
    said('{"x": "[[[1]]]", "config": {"kernel": 1}}', 400, "x a text"),
    said('{"x": 1, "config": {"kernel": 1}}', 400, "x a number"),
    said('{"x": [], "config": {"kernel": 1}}', 422, "x empty"),
    said(base64.b64encode(packed(**LAYER)).decode(), 400, "base64 as body"),
    said("<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", 400, "xml"),
]  # fmt: skip

GOOD = packed(config={"kernel": 2}, x=tensor(X))
headed = partial(Hostile, path=POOL, body=GOOD)
"""An honest pooling with odd headers."""

HEADERS = [
    headed("no media type", 415, media=None),
    headed("media type empty", 415, media=""),
    headed("octet-stream", 415, media="application/octet-stream"),
    headed("form", 415, media="application/x-www-form-urlencoded"),
    headed("multipart", 415, media="multipart/form-data; boundary=x"),
    headed("pickle type", 415, media="application/python-pickle"),
    headed("npy", 415, media="application/x-npy"),
    headed("text/json", 415, media="text/json"),
    Hostile("json in utf-16", 415, POOL, b"{}", media="application/json; charset=utf-16"),
    headed("two media types", 415, media=f"{MSGPACK}, {JSON}"),
    headed("a media type of 10000 letters", 415, media="application/" + "x" * 10_000),
    headed("gzip", 415, headers={"Content-Encoding": "gzip"}),
    headed("br", 415, headers={"Content-Encoding": "br"}),
    headed("twice compressed", 415, headers={"Content-Encoding": "identity, gzip"}),
    headed("accepts html", 406, headers={"Accept": "text/html"}),
    headed("accepts nothing", 406, headers={"Accept": "*/*;q=0"}),
    headed("accepts another tensor", 406, headers={"Accept": f"{MSGPACK}; tensors=pickle"}),
    headed("accept of commas", 406, headers={"Accept": "," * 9000}),
    headed("accept with an open quote", 406, headers={"Accept": 'a/b;c="' + "\\" * 5000}),
    headed("accept with odd weights", 406, headers={"Accept": f"{MSGPACK};q=nan"}),
    headed("accept anything", 200, headers={"Accept": "*/*"}),
    headed("deadline NaN", 422, headers={"X-Deadline-Ms": "NaN"}),
    headed("deadline inf", 422, headers={"X-Deadline-Ms": "inf"}),
    headed("deadline -1", 422, headers={"X-Deadline-Ms": "-1"}),
    headed("deadline 1e3", 422, headers={"X-Deadline-Ms": "1e3"}),
    headed("deadline empty", 422, headers={"X-Deadline-Ms": ""}),
    headed("deadline of 400 digits", 422, headers={"X-Deadline-Ms": "9" * 400}),
    headed("deadline in arabic digits", 422, headers={"X-Deadline-Ms": "\u00b2"}),
    headed("deadline 0", 504, headers={"X-Deadline-Ms": "0"}),
    headed("deadline of 31 years", 200, headers={"X-Deadline-Ms": "999999999999999"}),
    headed("request id of 10000 letters", 200, headers={"X-Request-Id": "a" * 10_000}),
    headed("request id with markup", 200, headers={"X-Request-Id": "<script>"}),
    headed("a key where none is asked for", 200, headers={"Authorization": "Bearer x"}),
    headed("overridden method", 200, headers={"X-HTTP-Method-Override": "DELETE"}),
    headed("forwarded", 200, headers={"X-Forwarded-For": "127.0.0.1", "Forwarded": "a=b"}),
    headed("another host", 200, headers={"Host": "evil.example"}),
    headed("range", 200, headers={"Range": "bytes=0-1"}),
]

ADDRESSES = [
    Hostile("no such operation", 404, "/v1/convolve/forward", slug="unknown-operation"),
    Hostile("no such action", 404, "/v1/conv/train", slug="unknown-action"),
    Hostile("operation in capitals", 404, "/v1/CONV/forward"),
    Hostile("dunder operation", 404, "/v1/__init__/forward"),
    Hostile("traversal", 404, "/v1/../../etc/passwd"),
    Hostile("traversal in the operation", 404, "/v1/..%2f..%2fetc%2fpasswd/forward"),
    Hostile("traversal in assets", 404, "/assets/..%2findex.html", method="GET"),
    Hostile("traversal in docs", 404, "/docs/..%2fstart.js", method="GET"),
    Hostile("traversal in problems", 404, "/problems/..%2f..%2fversion", method="GET"),
    Hostile("absolute path in assets", 404, "/assets//etc/passwd", method="GET"),
    Hostile("NUL", 404, "/v1/conv%00/forward"),
    Hostile("newline", 404, "/v1/conv%0d%0aX-A:%20b/forward"),
    Hostile("broken escape", 404, "/v1/%zz/forward"),
    Hostile("broken utf-8", 404, "/v1/%ff%fe/forward"),
    Hostile("full width letters", 404, "/v1/%ef%bd%83%ef%bd%8f%ef%bd%8e%ef%bd%96/forward"),
    Hostile("a path of 30000 letters", 404, "/v1/" + "a" * 30_000 + "/forward"),
    Hostile("an underscore more", 404, "/v1/conv_/forward"),
    Hostile("doubled slash", 404, "//v1/conv/forward"),
    Hostile("trailing slash", 404, "/v1/conv/forward/"),
    Hostile("another version", 404, "/v2/conv/forward"),
    Hostile("the framework's docs", 404, "/redoc", method="GET"),
    Hostile("favicon of nothing", 404, "/wp-login.php", method="GET"),
    Hostile("GET to compute", 405, method="GET", media=None),
    Hostile("HEAD to compute", 405, method="HEAD", media=None),
    Hostile("PUT", 405, method="PUT", body=packed(**LAYER)),
    Hostile("DELETE", 405, method="DELETE", media=None),
    Hostile("PATCH", 405, method="PATCH", body=packed(**LAYER)),
    Hostile("TRACE", 405, method="TRACE", media=None),
    Hostile("OPTIONS", 405, method="OPTIONS", media=None),
    Hostile("POST to limits", 405, "/v1/limits", body=b"{}"),
    Hostile("DELETE to readyz", 405, "/readyz", method="DELETE"),
]  # fmt: skip

REQUESTS = [*FRAMING, *TENSORS, *CONFIGS, *TEXTS, *HEADERS, *ADDRESSES]


def spoken(hostile: Hostile) -> bytes:
    """All bytes of a request, after which the connection is to be closed."""
    media = {} if hostile.media is None else {"Content-Type": hostile.media}
    length = {"Content-Length": str(len(hostile.body))}
    fields = {"Host": "x", "Connection": "close", **media, **length, **hostile.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return (
        f"{hostile.method} {hostile.path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + hostile.body
    )


def good() -> tuple[bytes, bytes]:
    """All bytes of an honest request, and those of the `y` that it must get."""
    return spoken(headed("good", 200)), X.reshape(2, 2, 2, 2).max(axis=(1, 3)).tobytes()
