"""Bodies → requests: in the event loop where that is quick, else by the scribe."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import cast

from app.routes.departure import unless_gone
from app.routes.head import Asked
from app.scribe.desks import Desks
from app.settings import Settings
from app.wire import (
    Body,
    DecodeLimits,
    Decoder,
    Form,
    PlanRequest,
    Request,
    decode_plan,
)


class Reader:
    """Reads bodies; one for each application.

    Args:
        desks: read large JSON; None where the event loop has to.
    """

    def __init__(self, settings: Settings, desks: Desks | None) -> None:
        self._limits = decode_limits(settings)
        self._decoder = Decoder(self._limits)
        self._desks = desks

    async def request(self, body: Body, asked: Asked) -> tuple[Request, Form | None]:
        """Read a body of `forward` or `backward`, see `Decoder.decode` and `Desk.read`."""
        desks = self._desks_for(body, asked)
        if desks is None:
            return self._decoder.decode(body, asked.exchange)
        return cast(Request, await self._read(desks, body, asked)), None

    async def plan_request(self, body: Body, asked: Asked) -> PlanRequest:
        """Read a body of `plan`, see `decode_plan` and `Desk.read`."""
        desks = self._desks_for(body, asked)
        if desks is None:
            return decode_plan(body, asked.exchange, self._limits)
        return cast(PlanRequest, await self._read(desks, body, asked))

    def largest(self, length: int) -> int:
        """See `Decoder.largest`."""
        return self._decoder.largest(length)

    def _desks_for(self, body: Body, asked: Asked) -> Desks | None:
        desks = self._desks
        if desks is None or asked.exchange.request != "json" or not desks.reads(len(body)):
            return None
        return desks

    def _read(self, desks: Desks, body: Body, asked: Asked) -> Awaitable[Request | PlanRequest]:
        work = desks.read(body, asked.record.action, asked.caller, asked.deadline, asked.visitor)
        return unless_gone(work, asked.scope, asked.receive)


def decode_limits(settings: Settings) -> DecodeLimits:
    """What a body may ask of its decoder."""
    return DecodeLimits(max_rank=settings.max_tensor_rank, max_elements=settings.max_json_numbers)
