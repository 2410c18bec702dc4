"""Bodies in msgpack whose like has been decoded before: only their data is new.

A stream of requests of one kind differs in the bytes of its tensors and in nothing else. What a body
says besides them is its form: the bytes around the data, and what decoding made of them. A body of the
same length with the same bytes in the same places is decoded to the same, whatever the data between
them, since nothing in msgpack depends on the inside of a binary value. So those bytes are compared,
which takes a twentieth of the time, and everything else goes the long way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from app.errors import ServiceError
from app.wire import lift
from app.wire.elements import Array, read_only
from app.wire.lift import Body
from app.wire.limits import DecodeLimits
from app.wire.negotiation import Exchange
from app.wire.requests import Request, decode
from engine.errors import EngineError
from engine.plans import TensorSpec
from engine.resolve import dtype_name

MOST_LENGTHS = 4096
"""Lengths of bodies that are remembered; beyond it, all are forgotten."""

MOST_FORMS = 1024
"""Forms that are remembered; beyond it, all are forgotten."""

MOST_OF_A_LENGTH = 4
"""Forms of one length that are remembered, so that not too much is compared in vain."""

MOST_MISSES = 1 << 14
"""After so many bodies that had a form's length and no known form, all are forgotten: times change."""

MOST_BYTES = 1024
"""A form of more bytes around its data is not remembered."""


@dataclass(frozen=True, eq=False)
class Form:
    """What bodies say besides the data of their tensors.

    Attributes:
        config, wants: see `Request`.
        specs: shape and dtype of each tensor.
        fixed: the bytes around the data, and where they begin and end.
        data: of each tensor, where its data begins and ends.
    """

    config: dict[str, object] | None
    wants: object
    specs: Mapping[str, TensorSpec]
    fixed: tuple[tuple[int, int, bytes], ...] = field(repr=False)
    data: tuple[tuple[str, int, int, np.dtype[np.generic], tuple[int, ...]], ...]

    def fits(self, body: memoryview) -> bool:
        """Whether a body of the right length has this form."""
        return all(body[start:end] == given for start, end, given in self.fixed)

    def tensors(self, body: memoryview) -> dict[str, Array]:
        """The tensors of such a body, small ones copied and large ones as views, as `decode` has them."""
        found = {}
        for name, start, end, dtype, shape in self.data:
            data = body[start:end]
            copied = data if len(data) >= lift.LIFTED_BYTES else data.tobytes()
            found[name] = read_only(np.frombuffer(copied, dtype).reshape(shape))
        return found


class Decoder:
    """`decode` within given limits, with a memory for forms."""

    def __init__(self, limits: DecodeLimits) -> None:
        self._limits = limits
        self._known: dict[int, list[Form]] = {}
        self._forms = self._misses = 0

    def decode(self, body: Body, exchange: Exchange) -> tuple[Request, Form | None]:
        """Read a body, see `decode`, and tell its form where that is known."""
        if exchange.request != "msgpack":
            return decode(body, exchange, self._limits), None
        view = memoryview(body)
        forms = self._known.get(len(view))
        if forms is None:
            # Most lengths are seen once; a form is worth learning where one comes again.
            if len(self._known) >= MOST_LENGTHS:
                self._forget()
            self._known[len(view)] = []
            return decode(body, exchange, self._limits), None
        for known in forms:
            if known.fits(view):
                return Request(known.config, known.tensors(view), known.wants, ()), known
        request = decode(body, exchange, self._limits)
        self._misses += 1
        if self._misses >= MOST_MISSES or self._forms >= MOST_FORMS:
            self._forget()
        elif len(forms) < MOST_OF_A_LENGTH and not request.extra:
            form = _form(body, exchange, self._limits)
            if form is not None:
                forms.append(form)
                self._forms += 1
        return request, None

    def largest(self, length: int) -> int:
        """Where the largest tensor's data would begin in a body of this length; 0 where none is known."""
        forms = self._known.get(length)
        if not forms:
            return 0
        places = ((end - start, start) for _, start, end, *_ in forms[-1].data)
        return max(places, default=(0, 0))[1]

    def _forget(self) -> None:
        self._known.clear()
        self._forms = self._misses = 0


def _form(body: Body, exchange: Exchange, limits: DecodeLimits) -> Form | None:
    """The form of a body that was decoded; None where its data is not simply somewhere in it."""
    try:
        request = decode(body, exchange, replace(limits, view_bytes=1))
    except (ServiceError, EngineError):
        return None  # binary keys are no views
    base = _address(np.frombuffer(body, np.uint8))
    data, fixed, end = [], [], 0
    for name, array in sorted(request.tensors.items(), key=lambda item: _address(item[1])):
        start = _address(array) - base
        if not array.size or not end <= start <= len(body) - array.nbytes:
            return None
        fixed.append((end, start, bytes(memoryview(body)[end:start])))
        end = start + array.nbytes
        data.append((name, start, end, array.dtype, array.shape))
    fixed.append((end, len(body), bytes(memoryview(body)[end:])))
    if sum(len(given) for *_, given in fixed) > MOST_BYTES:
        return None
    specs = {n: TensorSpec(a.shape, dtype_name(a.dtype)) for n, a in request.tensors.items()}
    order = {name: place for place, name in enumerate(specs)}
    data.sort(key=lambda item: order[item[0]])
    return Form(request.config, request.wants, specs, tuple(fixed), tuple(data))


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
