"""Who is refused a connection, and who is not even held until it has read that."""

from __future__ import annotations

import pytest

from app.errors import RateLimited, TooManyConnections
from app.places import LEAVING_CONNECTIONS, LEAVING_OF_AN_ADDRESS, Places
from app.settings import Settings


def test_one_too_many_is_refused_until_another_leaves() -> None:
    places = Places(Settings(max_connections=2))
    first, second = places.enter("192.0.2.1"), places.enter("192.0.2.2")
    assert first.refusal is second.refusal is None
    refused = places.enter("192.0.2.3")
    assert isinstance(refused.refusal, TooManyConnections)
    assert refused.refusal.retry_after == 1
    first.leave()
    # The one that was refused is still there, and takes no place.
    assert places.enter("192.0.2.3").refusal is None
    refused.leave()
    assert isinstance(places.enter("192.0.2.3").refusal, TooManyConnections)


def test_one_address_leaves_places_to_others() -> None:
    places = Places(Settings(max_address_connections=1))
    assert places.enter("192.0.2.1").refusal is None
    refused = places.enter("192.0.2.1").refusal
    assert isinstance(refused, RateLimited)
    assert "max_address_connections, 1" in refused.detail
    assert places.enter("192.0.2.2").refusal is None


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        (Settings(max_connections=1), LEAVING_CONNECTIONS),
        (Settings(max_connections=1, max_address_connections=1), LEAVING_OF_AN_ADDRESS),
    ],
    ids=["all", "of an address"],
)
def test_few_of_the_refused_are_held_while_they_read_why(settings: Settings, most: int) -> None:
    places = Places(settings)
    held = places.enter("192.0.2.1")
    leaving = [places.enter("192.0.2.1") for _ in range(most)]
    assert not any(place.crowded for place in (held, *leaving))
    assert places.enter("192.0.2.1").crowded
    assert places.enter("192.0.2.2").crowded == (most == LEAVING_CONNECTIONS)
    for place in leaving:
        place.leave()
    assert places.enter("192.0.2.1").refusal
    assert not places.enter("192.0.2.1").crowded
