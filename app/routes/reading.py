"""Bodies → requests: in the event loop where that is quick, else by the scribe."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NamedTuple, cast

from starlette.types import Receive, Scope

from app.edge import RECORD
from app.promises import Visitor
from app.record import Record
from app.routes.body import Body
from app.routes.departure import unless_gone
from app.scribe.desks import Desks
from app.settings import Settings
from app.wire import (
    DecodeLimits,
    Decoder,
    Exchange,
    Form,
    PlanRequest,
    Request,
    decode_plan,
)


class Sender(NamedTuple):
    """Who sent a body.

    Attributes:
        scope, receive, deadline: of the request.
        client: whose turn it uses.
        visitor: as whom it is known when it comes again.
    """

    scope: Scope
    receive: Receive
    deadline: float | None
    client: str
    visitor: Visitor


class Reader:
    """Reads bodies; one for each application.

    Args:
        desks: read large JSON; None where the event loop has to.
    """

    def __init__(self, settings: Settings, desks: Desks | None) -> None:
        self._limits = decode_limits(settings)
        self._decoder = Decoder(self._limits)
        self._desks = desks

    async def request(
        self, body: Body, exchange: Exchange, sender: Sender
    ) -> tuple[Request, Form | None]:
        """Read a body of `forward` or `backward`, see `Decoder.decode` and `Desk.read`."""
        desks = self._desks_for(body, exchange)
        if desks is None:
            return self._decoder.decode(body, exchange)
        return cast(Request, await self._read(desks, body, sender)), None

    async def plan_request(self, body: Body, exchange: Exchange, sender: Sender) -> PlanRequest:
        """Read a body of `plan`, see `decode_plan` and `Desk.read`."""
        desks = self._desks_for(body, exchange)
        if desks is None:
            return decode_plan(body, exchange, self._limits)
        return cast(PlanRequest, await self._read(desks, body, sender))

    def _desks_for(self, body: Body, exchange: Exchange) -> Desks | None:
        desks = self._desks
        if desks is None or exchange.request != "json" or not desks.reads(len(body)):
            return None
        return desks

    def _read(self, desks: Desks, body: Body, sender: Sender) -> Awaitable[Request | PlanRequest]:
        record: Record = sender.scope[RECORD]
        work = desks.read(body, record.action, sender.client, sender.deadline, sender.visitor)
        return unless_gone(work, sender.scope, sender.receive)


def decode_limits(settings: Settings) -> DecodeLimits:
    """What a body may ask of its decoder."""
    return DecodeLimits(max_rank=settings.max_tensor_rank, max_elements=settings.max_json_numbers)
