"""Messages over a stream that cuts them anywhere."""

from __future__ import annotations

import itertools
import socket
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.workers.channel import MAX_MESSAGE_BYTES, Message, Unpacker, messages, pack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), PLAIN, max_size=3), max_size=4), st.integers(1, 50))
def test_messages_arrive_whole_however_they_are_cut(sent: list[Message], step: int) -> None:
    stream = b"".join(map(pack, sent))
    unpacker = Unpacker()
    got = [m for i in range(0, len(stream), step) for m in unpacker.feed(stream[i : i + step])]
    assert got == sent


def test_a_message_has_a_largest_size() -> None:
    with pytest.raises(ValueError, match="at most"):
        pack({"text": "x" * MAX_MESSAGE_BYTES})


def test_a_blocking_socket_is_read_until_the_other_side_closes_it() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(pack({"a": 1}) + pack({"b": [2]}))
        assert list(messages(theirs, 30, pytest.fail)) == [{"a": 1}, {"b": [2]}]


def test_of_a_long_silence_the_reader_is_told_once_after_each_message() -> None:
    ours, theirs = socket.socketpair()
    silences: list[float] = []

    def silent() -> None:
        silences.append(time.monotonic())
        # Many silences later: were it told of each, there would be as many of these.
        late = threading.Timer(0.3, ours.sendall, [pack({"after": len(silences)})])
        late.start()

    with ours, theirs:
        got = list(itertools.islice(messages(theirs, 0.01, silent), 3))
    assert got == [{"after": 1}, {"after": 2}, {"after": 3}]
    assert len(silences) == 3
