"""Large bodies, received in place: whole whatever their pieces, and without harm to what follows."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import msgpack
import numpy as np
import pytest
import uvloop

from app import lanes
from app.addresses import network_of
from app.edge import LINGER_S, ClientGone
from app.incoming import CAN_DISCARD, SLICE_BYTES, Incoming, Wanted
from app.lanes import LEAST, PACED_BYTES, ROOM_BYTES, UNWANTED_RATE, Lanes
from app.leftover import LONG_REST
from app.routes.body import IN_PLACE_BYTES
from app.transport import Flow, unread_bytes
from benchmarks.stress.service import until
from tests import metrics
from tests.serving import Running, serving

X = np.arange(3 * SLICE_BYTES // 4, dtype=np.float32).reshape(1, 3, -1)
MIDDLE = X[:, :1, : SLICE_BYTES // 5]
SMALL = np.ones((1, 1, 4), np.float32)
COMMAND = (sys.executable, "-m", "app")


def message(x: np.ndarray, *headers: str) -> tuple[bytes, bytes]:
    """The head and the body of a request for the sums of neighbours."""
    tensor = {"dtype": "float32", "shape": x.shape, "data": x.tobytes()}
    body = msgpack.packb({"config": {"kernel": 2}, "x": tensor})
    lines = ["POST /v1/max_pool/forward HTTP/1.1", "Host: here", f"Content-Length: {len(body)}"]
    lines += ["Content-Type: application/vnd.msgpack", *headers, "", ""]
    return "\r\n".join(lines).encode(), body


def read(reader: socket.SocketIO) -> tuple[int, bytes]:
    """Status and body of one answer."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = reader.read(1)
        assert byte, "the server hung up"
        head += byte
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    assert found is not None
    left, body = int(found[1]), b""
    while left:
        piece = reader.read(left)
        assert piece, "the server hung up"
        body, left = body + piece, left - len(piece)
    return int(head[9:12]), body


def is_right(body: bytes, x: np.ndarray) -> bool:
    y = msgpack.unpackb(body)["y"]
    whole = x[..., : x.shape[-1] // 2 * 2]
    return bool(y["data"] == whole.reshape(*x.shape[:2], -1, 2).max(-1).tobytes())


@contextmanager
def connected(running: Running) -> Iterator[tuple[socket.socket, socket.SocketIO]]:
    host, port = running.url.removeprefix("http://").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=60) as connection,
        connection.makefile("rb", buffering=0) as reader,
    ):
        yield connection, reader


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    environ = {"CONVOKE_MAX_HELD_BYTES": "16MiB"}
    log = tmp_path_factory.mktemp("incoming") / "log"
    with serving(COMMAND, "--workers", "0", environ=environ, log=log) as running:
        yield running


def held(running: Running) -> float:
    """Bytes of bodies that the server holds, from its metrics."""
    with connected(running) as (connection, reader):
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        _, body = read(reader)
    return metrics.value(body.decode(), "convoke_held_bytes")


@pytest.mark.parametrize("step", [1000, 65536, IN_PLACE_BYTES, SLICE_BYTES, 1 << 30])
def test_a_body_is_whole_whatever_its_pieces(service: Running, step: int) -> None:
    head, body = message(X)
    with connected(service) as (connection, reader):
        for _ in range(2):
            connection.sendall(head)
            for start in range(0, len(body), step):
                connection.sendall(body[start : start + step])
            status, answer = read(reader)
            assert status == 200
            assert is_right(answer, X)


def test_what_follows_a_large_body_at_once_is_a_request_of_its_own(service: Running) -> None:
    large, small = message(X), message(SMALL)
    with connected(service) as (connection, reader):
        connection.sendall(b"".join((*large, *small, *large, *small)))
        for x in (X, SMALL, X, SMALL):
            status, answer = read(reader)
            assert status == 200
            assert is_right(answer, x)


def test_a_deadline_in_the_middle_of_a_body_leaves_the_connection_in_order(
    service: Running,
) -> None:
    x = X[:, :1]
    head, body = message(x, "X-Deadline-Ms: 200")
    with connected(service) as (connection, reader):
        connection.sendall(head + body[: IN_PLACE_BYTES * 3 // 2])
        status, _ = read(reader)
        assert status == 504
        connection.sendall(body[IN_PLACE_BYTES * 3 // 2 :])
        connection.sendall(b"".join(message(SMALL)))
        status, answer = read(reader)
        assert status == 200
        assert is_right(answer, SMALL)
    assert held(service) == 0


def test_bodies_beyond_what_may_be_held_are_refused_and_forgotten(service: Running) -> None:
    # Almost all of it fits beside the other, so that the connection is kept for what follows.
    head, body = message(np.zeros((1, 1, (8 << 20) // 4 + 1000), np.float32))
    with connected(service) as (other, _):
        other.sendall(head + body[: 8 << 20])
        until(lambda: held(service) >= 8 << 20)
        with connected(service) as (connection, reader):
            connection.sendall(head + body)
            status, answer = read(reader)
            assert status == 503
            assert b"held" in answer
            connection.sendall(b"".join(message(SMALL)))
            assert read(reader)[0] == 200
    until(lambda: held(service) == 0)


def test_who_stops_sending_has_nobody_wait_for_its_turn(tmp_path: Path) -> None:
    x = np.arange(2 * PACED_BYTES // 4, dtype=np.float32).reshape(1, 1, -1)
    head, body = message(x)
    half = head + body[: len(body) // 2]
    with (
        serving(COMMAND, "--workers", "0", log=tmp_path / "log") as service,
        ExitStack() as stack,
    ):
        stopped = [
            stack.enter_context(connected(service)) for _ in range(ROOM_BYTES // PACED_BYTES)
        ]
        for connection, _ in stopped:
            connection.sendall(half)
        with connected(service) as (connection, reader):
            connection.sendall(head + body)
            status, answer = read(reader)
            assert status == 200
            assert is_right(answer, x)
        for connection, reader in stopped:
            connection.sendall(body[len(body) // 2 :])
            status, answer = read(reader)
            assert status == 200
            assert is_right(answer, x)


def test_refused_bodies_are_thrown_away_at_a_rate_and_in_turn(tmp_path: Path) -> None:
    size = 24 << 20
    head = b"POST /v1/no_pool/forward HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
    with (
        serving(COMMAND, "--workers", "0", log=tmp_path / "log") as service,
        ExitStack() as stack,
        ThreadPoolExecutor(8) as crowd,
    ):
        clients = [stack.enter_context(connected(service)) for _ in range(8)]
        started = time.monotonic()
        for connection, reader in clients:
            connection.sendall(head)
            assert read(reader)[0] == 404  # nothing of it has to be sent for that
        for done in [crowd.submit(connection.sendall, bytes(size)) for connection, _ in clients]:
            done.result()
        for _, reader in clients:
            assert reader.read(1) == b""
        assert time.monotonic() - started > 0.9 * len(clients) * size / UNWANTED_RATE


def test_the_body_of_a_refused_request_is_passed_over(service: Running) -> None:
    head, body = message(MIDDLE)
    refused = head.replace(b"/max_pool/", b"/no_pool/")
    with connected(service) as (connection, reader):
        for _ in range(2):
            connection.sendall(refused)
            assert read(reader)[0] == 404
            connection.sendall(body)
            connection.sendall(b"".join(message(SMALL)))
            status, answer = read(reader)
            assert status == 200
            assert is_right(answer, SMALL)


def test_a_body_that_stops_half_way_is_answered_and_forgotten(tmp_path: Path) -> None:
    head, body = message(X)
    impatient = {"CONVOKE_BODY_TIMEOUT_S": "1"}
    with serving(COMMAND, "--workers", "0", environ=impatient, log=tmp_path / "log") as service:
        with connected(service) as (connection, reader):
            connection.sendall(head + body[: len(body) // 2])
            status, answer = read(reader)
            assert status == 408
            assert b"in time" in answer
            connection.sendall(body[len(body) // 2 :])
            assert reader.read(1) == b""
        assert held(service) == 0


def test_a_body_that_stalls_keeps_nobody_out(service: Running) -> None:
    size = 16 << 20  # all that may be held
    head = message(X)[0].replace(b"Content-Length: ", b"Content-Length: %d\r\nX-Was: " % size)

    def served() -> bool:
        with connected(service) as (connection, reader):
            connection.sendall(b"".join(message(SMALL)))
            return read(reader)[0] == 200

    with connected(service) as (connection, reader):
        connection.sendall(head + bytes(size - 1))
        until(lambda: held(service) == size - 1)
        until(served)
        status, answer = read(reader)
        assert status == 408
        assert b"no room for others" in answer
        assert held(service) == 0
        # It is kept, as after any refusal with so little left to come.
        connection.sendall(b"!" + b"".join(message(SMALL)))
        assert read(reader)[0] == 200


def test_a_client_that_leaves_in_the_middle_is_forgotten(service: Running) -> None:
    head, body = message(X)
    with connected(service) as (connection, _):
        connection.sendall(head + body[: len(body) // 2])
    end = time.monotonic() + 60
    while held(service):
        assert time.monotonic() < end


def test_a_client_that_leaves_what_nobody_wants_unsent_is_no_error() -> None:
    async def scenario() -> None:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
        transport = SimpleNamespace(set_protocol=lambda _: None)
        owner: Any = SimpleNamespace(
            transport=transport, flow=Mock(), network="", connection_lost=Mock()
        )
        Incoming(owner, 1000, Lanes()).connection_lost(None)
        gc.collect()
        assert not complaints
        owner.connection_lost.assert_called_once_with(None)

    asyncio.run(scenario())


def test_a_body_uses_the_turn_of_its_caller_or_of_the_network_that_it_comes_from() -> None:
    async def scenario() -> None:
        owner: Any = SimpleNamespace(
            transport=Mock(), flow=Mock(), network=network_of("2001:db8::1:2:3:4")
        )
        assert Incoming(owner, 1000, Lanes()).caller == network_of("2001:db8::")
        wanted = Wanted(b"", lambda: memoryview(bytearray(1000)), lambda _: None, "key-1")
        assert Incoming(owner, 1000, Lanes(), wanted).caller == "key-1"

    asyncio.run(scenario())


# ---- turns

ADDRESS = "192.0.2.1"
CALLER = network_of(ADDRESS)
"""Of all bodies, wanted or not."""


class Rig:
    """Those who receive large bodies from one client; nobody is found slow."""

    def __init__(self) -> None:
        self.lanes = Lanes()

    def enter(self, wanted: bool = True, left: int = ROOM_BYTES) -> tuple[Incoming, Any]:
        owner: Any = SimpleNamespace(
            transport=Mock(),
            flow=Mock(),
            network=network_of(ADDRESS),
            body_received=Mock(),
            connection_lost=Mock(),
        )
        given = Wanted(b"", lambda: memoryview(bytearray(left)), lambda _: None, CALLER)
        return Incoming(owner, left, self.lanes, given if wanted else None), owner


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(lanes, "LOOK_S", 3600.0)
    return Rig()


async def given_up(incoming: Incoming) -> None:
    incoming.give_up()
    with pytest.raises(ClientGone):
        await incoming.whole()


def test_what_is_given_up_gives_its_turn_to_the_next_and_waits_among_the_refused(rig: Rig) -> None:
    async def scenario() -> None:
        refused = [rig.enter(wanted=False) for _ in range(LEAST)]
        (first, owner), *_, (last, _) = [rig.enter() for _ in range(LEAST + 1)]
        first.buffer_updated(SLICE_BYTES)  # and a pause begins
        owner.flow.reset_mock()
        assert (first.begun, last.begun) == (True, False)
        await given_up(first)
        assert (first.begun, last.begun) == (False, True)
        await asyncio.sleep(0.01)
        owner.flow.wait.assert_called_once_with()
        assert not owner.flow.go_on.called, "the pause is over, but it is not its turn"
        refused[0][0].connection_lost(None)
        assert first.begun
        owner.flow.go_on.assert_called_once_with()

    asyncio.run(scenario())


def test_a_refused_body_that_is_given_up_has_the_turn_that_it_had(rig: Rig) -> None:
    async def scenario() -> None:
        (first, owner), *_, (last, _) = [rig.enter(wanted=False) for _ in range(LEAST + 1)]
        owner.flow.reset_mock()
        first.give_up()
        assert (first.begun, last.begun) == (True, False)
        assert not owner.flow.mock_calls

    asyncio.run(scenario())


def test_of_one_that_has_gone_nothing_more_is_read_after_its_pause(rig: Rig) -> None:
    async def scenario() -> None:
        incoming, owner = rig.enter()
        incoming.buffer_updated(SLICE_BYTES)
        owner.flow.reset_mock()
        incoming.connection_lost(None)
        with pytest.raises(ClientGone):
            await incoming.whole()
        await asyncio.sleep(0.01)
        assert not owner.flow.mock_calls

    asyncio.run(scenario())


def test_whoever_has_a_whole_body_leaves_its_connection_alone(rig: Rig) -> None:
    async def scenario() -> None:
        incoming, owner = rig.enter(left=3)
        incoming.get_buffer(-1)[:] = b"abc"
        incoming.buffer_updated(3)
        owner.body_received.assert_called_once_with()
        owner.flow.reset_mock()
        assert bytes(await incoming.whole()) == b"abc"
        assert not owner.flow.mock_calls

    asyncio.run(scenario())


def test_without_memory_for_a_body_its_reader_is_told_and_the_next_has_its_turn(rig: Rig) -> None:
    def starved() -> memoryview:
        raise MemoryError

    async def scenario() -> None:
        (first, _), *_ = [rig.enter() for _ in range(LEAST)]
        _, owner = rig.enter(left=1)
        wanted = Wanted(b"x", starved, lambda _: None, CALLER)
        starving = Incoming(owner, ROOM_BYTES, rig.lanes, wanted)
        last, _ = rig.enter()
        owner.flow.reset_mock()
        assert not starving.begun
        await given_up(first)
        with pytest.raises(MemoryError):
            await starving.whole()
        assert last.begun
        # What it had is thrown away, as is what comes.
        assert starving.begun
        owner.flow.go_on.assert_called_once_with()

    asyncio.run(scenario())


class Receiving(asyncio.Protocol):
    """A connection that receives a large body from the first byte on, and nothing else."""

    def __init__(self, lanes: Lanes, made: list[Receiving]) -> None:
        self._lanes, self._made = lanes, made

    def connection_made(self, transport: Any) -> None:
        self.transport, self.client = transport, transport.get_extra_info("peername")
        self.flow = Flow(transport, (), ())

    def data_received(self, data: bytes) -> None:
        wanted = Wanted(data, lambda: memoryview(bytearray(ROOM_BYTES)), lambda _: None, CALLER)
        self.incoming = Incoming(self, ROOM_BYTES, self._lanes, wanted)  # type: ignore[arg-type]
        self._made.append(self)


def test_a_client_that_goes_frees_its_turn_for_the_next_that_sends(rig: Rig) -> None:
    async def scenario() -> None:
        made: list[Receiving] = []
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Receiving(rig.lanes, made), "127.0.0.1", 0)
        clients = []
        for _ in range(LEAST + 2):
            clients.append(socket.create_connection(server.sockets[0].getsockname()))
            clients[-1].sendall(b"!")
            while len(made) < len(clients):
                await asyncio.sleep(0)
        *_, silent, last = (each.incoming for each in made)
        clients[-1].sendall(b"some")
        while not unread_bytes(made[-1].transport):
            await asyncio.sleep(0)
        assert not silent.begun
        assert not last.begun
        clients[0].close()
        while not silent.begun and not last.begun:
            await asyncio.sleep(0)
        assert (silent.begun, last.begun) == (False, True)
        with pytest.raises(ClientGone):
            await made[0].incoming.whole()
        for client in clients:
            client.close()
        server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.skipif(not CAN_DISCARD, reason="the kernel copies what it is to throw away")
def test_what_nobody_wants_is_thrown_away_where_it_is() -> None:
    async def scenario(theirs: socket.socket, ours: socket.socket) -> None:
        transport = Mock(get_extra_info=lambda _: ours)
        owner: Any = SimpleNamespace(
            transport=transport, flow=Mock(), network="", body_received=Mock()
        )
        incoming = Incoming(owner, 1000, Lanes())
        assert len(incoming.get_buffer(-1)) == 1000  # nothing has come
        theirs.sendall(bytes(600))
        assert len(incoming.get_buffer(-1)) == 400
        theirs.sendall(bytes(399))
        assert len(incoming.get_buffer(-1)) == 1
        theirs.sendall(b"!POST")
        place = incoming.get_buffer(-1)
        assert len(place) == 1  # the last byte is the transport's, which learns of the end by it
        assert ours.recv_into(place) == 1
        assert place.tobytes() == b"!"
        incoming.buffer_updated(1)
        owner.body_received.assert_called_once_with()
        assert ours.recv(100) == b"POST"

    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        with theirs, ours:
            ours.setblocking(False)
            asyncio.run(scenario(theirs, ours))


@pytest.mark.skipif(not CAN_DISCARD, reason="the kernel copies what it is to throw away")
@pytest.mark.parametrize(("thrown", "waits"), [(1000, False), (SLICE_BYTES, True)])
def test_others_have_their_turn_while_much_is_thrown_away(
    thrown: int, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        owner: Any = SimpleNamespace(transport=Mock(), flow=Mock(), network="")
        incoming = Incoming(owner, 10 * SLICE_BYTES, Lanes())
        owner.flow.reset_mock()
        incoming.get_buffer(-1)
        incoming.buffer_updated(1)
        assert owner.flow.wait.called == waits
        assert not owner.flow.go_on.called
        await asyncio.sleep(0.01)
        assert owner.flow.go_on.called == waits

    monkeypatch.setattr(Incoming, "_discard", lambda _: thrown)
    asyncio.run(scenario())


def test_a_client_with_a_slow_line_reads_its_refusal(service: Running) -> None:
    """Cut off while it sends, it would take the network to be at fault."""
    pieces = [bytes(2 << 20)] * 12  # for longer than the rest of what has no end is read
    assert 0.25 * len(pieces) > LINGER_S
    assert sum(map(len, pieces)) > LONG_REST
    with connected(service) as (connection, reader):
        connection.sendall(_to_nowhere(sum(map(len, pieces))))
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.25)
        assert read(reader)[0] == 404
        assert reader.read(1) == b""


@pytest.mark.parametrize("option", ["", "Connection: close\r\n"])
def test_a_shorter_rest_of_a_refused_body_keeps_the_connection(
    service: Running, option: str
) -> None:
    rest = bytes(LONG_REST - 1)
    with connected(service) as (connection, reader):
        connection.sendall(_to_nowhere(len(rest), option))
        assert read(reader)[0] == 404
        connection.sendall(rest)
        if option:
            assert reader.read(1) == b""
        else:
            connection.sendall(b"".join(message(SMALL)))
            assert read(reader)[0] == 200


def test_a_client_that_reads_its_refusal_may_stop_sending(service: Running) -> None:
    with connected(service) as (connection, reader):
        connection.sendall(_to_nowhere(LONG_REST) + bytes(1 << 20))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += reader.read(1)
        assert b"connection: close" in head.lower().split(b"\r\n")
    with connected(service) as (connection, reader):
        connection.sendall(b"".join(message(SMALL)))
        assert read(reader)[0] == 200


def test_what_was_answered_before_a_long_refused_body_is_whole_whatever_follows(
    service: Running,
) -> None:
    """Closed with bytes unread, the connection would be reset, and the answer cut off."""
    large, small = b"".join(message(X)), b"".join(message(SMALL))
    with connected(service) as (connection, reader):
        refused = _to_nowhere(LONG_REST) + bytes(LONG_REST)
        connection.sendall(large + refused + small)
        time.sleep(0.5)
        status, answer = read(reader)
        assert status == 200
        assert is_right(answer, X)
        assert read(reader)[0] == 404
        assert reader.read(1) == b""


def test_connections_that_clients_end_after_a_refusal_do_not_pile_up(tmp_path: Path) -> None:
    """While others send all of what was refused, in turn, and at a rate."""
    size, over = 2 * ROOM_BYTES, threading.Event()

    def send_on(service: Running) -> None:
        while not over.is_set():
            with connected(service) as (connection, reader):
                connection.sendall(_to_nowhere(size))
                connection.sendall(bytes(size))
                assert read(reader)[0] == 404

    with (
        serving(COMMAND, "--workers", "0", log=tmp_path / "log") as service,
        ThreadPoolExecutor(4) as crowd,
    ):
        files = Path(f"/proc/{service.process.pid}/fd")
        sending = [crowd.submit(send_on, service) for _ in range(4)]
        for _ in range(200):
            with connected(service) as (connection, reader):
                connection.sendall(_to_nowhere(size))
                assert read(reader)[0] == 404
        try:
            until(lambda: len(list(files.iterdir())) < 100, 20)
        finally:
            over.set()
        for each in sending:
            each.result()


def _to_nowhere(length: int, option: str = "") -> bytes:
    head = f"POST /v1/no_pool/forward HTTP/1.1\r\nHost: x\r\n{option}"
    return f"{head}Content-Length: {length}\r\n\r\n".encode()
