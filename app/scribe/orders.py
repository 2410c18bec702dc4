"""Letters that wait for a scribe: callers take turns, so that who sends much waits for itself."""

from __future__ import annotations

import asyncio
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from app.errors import ServiceError
from app.scribe.letters import Letter
from app.scribe.process import Written
from engine.errors import EngineError


@dataclass(eq=False, slots=True)
class Order:
    """A letter between its arrival and its answer.

    Attributes:
        caller: whose turn it uses.
        blame: how much the deaths of scribes that worked on it speak against it, see `BLAME`.
    """

    letter: Letter
    caller: str
    future: asyncio.Future[Written]
    blame: float = 0.0

    def fail(self, error: Exception) -> None:
        """Answer with an error, unless there is an answer."""
        if not self.future.done():
            if not isinstance(error, ServiceError | EngineError):
                error.add_note("".join(traceback.format_exception(error)))  # for the log
            # The frames of a traceback hold the letter, and so would keep its bytes in a circle.
            self.future.set_exception(error.with_traceback(None))


class Orders:
    """What waits, by caller."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Order]] = OrderedDict()

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._waiting)

    def put(self, order: Order) -> None:
        """One more of its caller's."""
        self._waiting.setdefault(order.caller, deque()).append(order)

    def again(self, order: Order) -> None:
        """Put an order that is still waited for back into its place, which was the first."""
        if not order.future.done():
            self._waiting.setdefault(order.caller, deque()).appendleft(order)
            self._waiting.move_to_end(order.caller, last=False)

    def take(self) -> Order:
        """The next one, of the caller whose turn it is."""
        caller, orders = self._waiting.popitem(last=False)
        order = orders.popleft()
        if orders:
            self._waiting[caller] = orders
        return order

    def withdraw(self, order: Order) -> None:
        """It is not waited for; take it out if it still waits."""
        orders = self._waiting.get(order.caller)
        if orders is not None and order in orders:
            orders.remove(order)
            if not orders:
                del self._waiting[order.caller]

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """Answer all with an error of their own."""
        for orders in self._waiting.values():
            for order in orders:
                order.fail(error())
        self._waiting.clear()
