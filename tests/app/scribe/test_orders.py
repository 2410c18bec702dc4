"""Whose letter is next."""

from __future__ import annotations

import asyncio

import pytest

from app.errors import ShuttingDown
from app.scribe.letters import Reading
from app.scribe.orders import Order, Orders
from tests.app.dispatching import scenario
from tests.app.limits import decode_limits


def order(caller: str) -> Order:
    return Order(
        Reading(b"", False, decode_limits()), caller, asyncio.get_running_loop().create_future()
    )


def taken(orders: Orders) -> str:
    callers = ""
    while orders:
        callers += orders.take().caller
    return callers


@scenario
async def test_callers_take_turns() -> None:
    orders = Orders()
    for caller in "aaabbc":
        orders.put(order(caller))
    assert taken(orders) == "abcaba"


@scenario
async def test_what_is_put_back_is_next_unless_nobody_waits_for_it() -> None:
    orders = Orders()
    for caller in "ab":
        orders.put(order(caller))
    first = orders.take()
    orders.again(first)
    assert taken(orders) == "ab"
    first.future.cancel()
    orders.again(first)
    assert not orders


@scenario
async def test_what_is_withdrawn_is_not_taken() -> None:
    orders = Orders()
    made = [order(caller) for caller in "aab"]
    for each in made:
        orders.put(each)
    orders.withdraw(made[0])
    orders.withdraw(made[2])
    assert taken(orders) == "a"
    orders.withdraw(made[1])


@scenario
async def test_all_can_be_failed_once() -> None:
    orders = Orders()
    made = order("a")
    orders.put(made)
    orders.fail_all(ShuttingDown)
    made.fail(ValueError())
    assert not orders
    with pytest.raises(ShuttingDown):
        await made.future
