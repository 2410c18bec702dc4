"""The process: sockets, signals, the line that says it is ready, and an orderly end.

SIGTERM and SIGINT, and SIGHUP where it is not ignored: ready turns false and new work is refused with
503, while requests under way are answered and `/readyz` tells the truth; then the socket closes, the
workers end, and so does the process, with status 0. Only a later SIGINT, Ctrl-C once more, does not wait:
supervisors repeat SIGTERM, and a terminal that closes SIGHUP. What is done until the server listens to
signals: `early`.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import math
import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app import logs
from app.connection import Connection, bounded
from app.dispatcher import Dispatcher
from app.early import endings, leave_when_told, mind_no_more
from app.files import with_files
from app.filesize import allow_file_size
from app.keepalive import LAST_READ_S
from app.lifecycle import Lifecycle
from app.main import create_app
from app.routes.body import Intake
from app.settings import Settings
from app.start import (
    address,
    cannot_listen,
    granted,
    hear_signals,
    listen,
    loopback,
    tell,
)
from app.workers.berths import Berths
from app.workers.memory import KEEP_S, LARGE_BYTES, give_back, keep_freed_memory
from app.workers.turns import come_first, come_last

SWEEP_S = 1.0
"""How often connections that wait too long are looked for."""

SUSPENDED_S = 1.0
"""A round that takes so much longer says that this process did not run: it was suspended."""

GC_OBJECTS = 10_000
"""Objects that are made before Python looks for circles: few requests leave any, and those who are
refused leave promises, which are looked through for nothing."""

TOGETHER_S = 0.2
"""Signals within it are one: who ends a process may send one to it and one to its group, as `timeout`."""

LAST_CALL_S = 0.1
"""How long idle connections may still bring a request, once no new ones are taken."""

HANG_UP_S = 1
"""How long answers may still be on their way to slow readers at the very end."""


class Server(uvicorn.Server):
    """uvicorn's server with our signals and our end."""

    def __init__(self, app: FastAPI, settings: Settings, listener: socket.socket) -> None:
        state = app.state
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=bounded(settings, state.telemetry, state.gate, state.access),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                root_path=settings.root_path,
                timeout_keep_alive=settings.keep_alive_s,
                timeout_graceful_shutdown=HANG_UP_S,
            )
        )
        self._lifecycle: Lifecycle = state.lifecycle
        self._intake: Intake = state.intake
        self._dispatcher: Dispatcher = state.dispatcher
        self._berths: Berths | None = self._dispatcher.berths
        self._settings = settings
        self._listener = listener
        self._forced = asyncio.Event()
        self._signalled = -math.inf  # when it was told to end
        # When a large body was there last, of whose memory the allocator keeps what is freed.
        self._large: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the workers, listen, and say so."""
        try:
            await super().startup(sockets)
            if self.started and self._listener.fileno() < 0:
                # uvloop closes a socket that it cannot listen on, and says nothing.
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        except OSError as error:
            # Somebody else began to listen since we bound the address.
            await self.lifespan.shutdown()
            raise cannot_listen(self._settings, error) from None
        if self.started and not self.should_exit:
            tell(f"Convoke is ready on {address(self._listener)}")
            if not self._settings.api_keys and not loopback(self._listener):
                logs.server.warning("open to all who reach it, as CONVOKE_API_KEYS names no key")

    async def main_loop(self) -> None:
        """Serve until the first signal, then until nothing is under way."""
        # What is there now stays to the end; looking through it again and again would hold requests up.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_OBJECTS)
        sweeper = asyncio.get_running_loop().create_task(self._sweep())
        await super().main_loop()
        self._lifecycle.drain()
        come_last(0)  # or whoever is refused now, and again, comes before who was let in
        under_way = [self._lifecycle.idle(), self._forced.wait()]
        waits = [asyncio.ensure_future(each) for each in under_way]
        timeout = self._settings.drain_timeout_s
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        sweeper.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, answer what the open ones still bring, and end."""
        for server in self.servers:
            server.close()
        if not self.force_exit:
            await asyncio.sleep(LAST_CALL_S)
        await super().shutdown(sockets)
        if self.force_exit:
            # uvicorn leaves this out when it is forced, and workers would outlive us.
            await self.lifespan.shutdown()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Our signals; uvicorn's way would end the process by the signal itself."""
        loop = asyncio.get_running_loop()

        waiting: set[int] = set()

        def hear(number: int, _frame: FrameType | None) -> None:
            # One of a kind at a time, as the system does: whoever repeats them must not fill memory.
            if number not in waiting:
                waiting.add(number)
                loop.call_soon_threadsafe(heard, number)

        def heard(number: int) -> None:
            waiting.discard(number)
            self._on_signal(signal.Signals(number))

        # Not the loop's handlers: when it takes them away, a signal ends the process for a moment.
        for each in endings():
            signal.signal(each, hear)
        try:
            yield
        finally:
            leave_when_told()

    def _on_signal(self, number: signal.Signals) -> None:
        if self.should_exit:
            if number != signal.SIGINT or monotonic() < self._signalled + TOGETHER_S:
                return
            logs.server.warning("ending without waiting", extra={"fields": {"signal": number.name}})
            self.force_exit = self._lifecycle.hurried = True
            self._forced.set()
            return
        self._signalled = monotonic()
        under_way = self._lifecycle.in_flight
        fields = {"signal": number.name, "requests": under_way}
        logs.server.info("ending once requests are answered", extra={"fields": fields})
        self._lifecycle.drain()
        self.should_exit = True
        if not self.started:
            # Workers that fail would be started again and again, for nobody.
            self._end = asyncio.ensure_future(self._dispatcher.drain(0.0))

    async def _sweep(self) -> None:
        """Look after connections and memory about once in `SWEEP_S`, until it is cancelled."""
        before = monotonic()
        while True:
            await asyncio.sleep(SWEEP_S)
            # After a suspension both times are up at once: what has come is read before it is judged.
            await asyncio.sleep(LAST_READ_S)
            now = monotonic()
            lost = now - before - SWEEP_S - LAST_READ_S
            before = now
            _tried(self._expire, now, lost if lost > SUSPENDED_S else 0.0)
            _tried(self._give_back, now)
            if self._berths is not None:
                _tried(self._berths.tend)

    def _expire(self, now: float, lost: float) -> None:
        """End connections whose clients have been too slow; see `Connection.expire`."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                _tried(connection.expire, now, lost)

    def _give_back(self, now: float) -> None:
        """Give freed memory back some time after there were large bodies."""
        most, self._intake.most = self._intake.most, self._intake.held
        if most >= LARGE_BYTES:
            self._large = now
        elif self._large is not None and now - self._large > KEEP_S:
            self._large = None
            give_back()


def _tried(function: Callable[..., None], *arguments: float) -> None:
    """Call one of those that look after something; what it fails at keeps nobody from the rest."""
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 - else no time would ever be up again
        logs.server.error("a look after connections or memory failed", exc_info=error)


def serve(settings: Settings) -> int:
    """Run the service until it is told to end; returns the exit status.

    Raises:
        CannotStart: the address cannot be had, or the system does not grant what it takes.
    """
    hear_signals()
    listener = listen(settings)
    keep_freed_memory()
    come_first()
    with granted():
        handler = logs.configure(settings.log_level, settings.log_format)
    try:
        with granted():
            settings = with_files(settings)
            allow_file_size(settings)
            app = create_app(settings, lambda: handler.dropped)
            server = Server(app, settings, listener)
            runner = asyncio.Runner(loop_factory=server.config.get_loop_factory())
            runner.get_loop()
        with runner:
            runner.run(server.serve([listener]))
    finally:
        handler.close()
        mind_no_more()
    return 0 if server.started else 1
