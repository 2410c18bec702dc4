"""API keys: who is let in, by what name, and what others are told."""

from __future__ import annotations

import pytest

from app import access
from app.access import Access
from app.errors import Forbidden, Unauthorized

ACCESS = Access(("first", "second", "third"))


def test_without_keys_everybody_is_let_in() -> None:
    assert [Access(()).check(given) for given in (None, b"", b"Bearer x", b"nonsense")] == [""] * 4


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (b"Bearer first", "key-1"),
        (b"bearer second", "key-2"),
        (b"BEARER  third", "key-3"),
        (b" Bearer third ", "key-3"),
    ],
)
def test_a_key_has_the_name_of_its_place(given: bytes, name: str) -> None:
    assert ACCESS.check(given) == name


@pytest.mark.parametrize("given", [None, b"", b"Bearer", b"Bearer ", b"Basic first", b"first"])
def test_without_a_key_it_is_asked_for(given: bytes | None) -> None:
    with pytest.raises(Unauthorized):
        ACCESS.check(given)


@pytest.mark.parametrize(
    "given",
    [b"Bearer fourth", b"Bearer firs", b"Bearer first second", b"Bearer FIRST", b"Bearer \xff"],
)
def test_another_key_is_refused(given: bytes) -> None:
    with pytest.raises(Forbidden):
        ACCESS.check(given)


@pytest.mark.parametrize("given", [b"Bearer first", b"Bearer third", b"Bearer none"])
def test_every_key_is_compared_whichever_fits(
    given: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return one == other

    monkeypatch.setattr(access, "compare_digest", compare)
    try:
        ACCESS.check(given)
    except Forbidden:
        assert given == b"Bearer none"
    assert compared == [b"first", b"second", b"third"]
