"""Servers and generators of one run, and rounds that alternate between servers.

Rounds are short and the servers take turns, so that whatever else the machine does falls on all of
them alike; ratios are taken between neighbours.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import TracebackType
from typing import Self

from benchmarks.load.loads import Spec
from benchmarks.load.results import Outcome
from benchmarks.load.servers import ROOT, Server, serving

COMMANDS: Mapping[str, Sequence[str]] = {
    "echo": ("benchmarks.load.echo",),
    "simple": ("benchmarks.load.simple",),
    "simple, 1 thread": ("benchmarks.load.simple", "1"),
    "ours": ("app", "--port", "0"),
    "ours, asleep": ("app", "--port", "0", "--keep-awake", "false"),
    "ours, unbatched": ("app", "--port", "0", "--batching", "false"),
    "ours, queue of 256": ("app", "--port", "0", "--max-queue-requests", "256"),
    "ours, queue of 32": ("app", "--port", "0", "--max-queue-requests", "32"),
}
"""Every server, by the name it has in reports, as arguments of ``python -m``."""

WARM_UP_S = 0.4
"""How long a server that has just started is loaded before anything is measured."""

Rounds = dict[str, list[Outcome]]
"""Outcomes by server, in the order of the rounds."""


def tell(spec: Spec, rounds: int) -> None:
    """Say what is measured now, since all of it takes minutes."""
    load = f"{spec.rate:.0f} requests/s" if spec.rate else f"{spec.connections} connections"
    print(f"  {spec.stream}, {load}, {rounds} rounds of {spec.seconds:.1f} s", flush=True)


class Generator:
    """A generator's process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load.generator"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, specs: Sequence[Spec]) -> None:
        """Start a round."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([asdict(spec) for spec in specs]) + "\n")
        self._process.stdin.flush()

    def finish(self) -> list[Outcome]:
        """Wait for a round's end.

        Raises:
            RuntimeError: the generator ended, for a reason that it told on standard error.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the load generator ended; see above")
        return [Outcome.read(report) for report in json.loads(line)]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


class Bench:
    """The generators, and servers that are started when they are first needed."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._servers: dict[str, Server] = {}
        self._generator = Generator()
        self._second = Generator()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._generator.close()
        self._second.close()
        self._stack.close()

    def server(self, name: str) -> Server:
        """A server, running and warm."""
        if name not in self._servers:
            started = serving(name, COMMANDS[name])
            server = self._servers[name] = self._stack.enter_context(started)
            for stream, connections in (("small-forward", 16), ("middle-forward", 4)):
                self.round(name, Spec(stream=stream, connections=connections, seconds=WARM_UP_S))
            return server
        return self._servers[name]

    def round(self, name: str, *specs: Spec, aside: Sequence[Spec] = ()) -> list[Outcome]:
        """Load a server.

        Args:
            aside: loads that come from the second generator, whose latencies the first one's
                work does not touch.
        """
        server = self.server(name)
        before = server.cpu()
        loads = [replace(spec, port=server.port, echo=name == "echo") for spec in (*specs, *aside)]
        self._generator.begin(loads[: len(specs)])
        if aside:
            self._second.begin(loads[len(specs) :])
        outcomes = self._generator.finish() + (self._second.finish() if aside else [])
        used, memory = server.cpu() - before, server.memory()
        return [replace(outcome, cpu=used, memory=memory) for outcome in outcomes]

    def paired(self, names: Sequence[str], spec: Spec, rounds: int) -> Rounds:
        """Give servers the same load in turn, so many times, forth and back."""
        for name in names:
            self.server(name)
        tell(spec, rounds)
        found: Rounds = {name: [] for name in names}
        for number in range(rounds):
            for name in names if number % 2 else reversed(names):
                found[name] += self.round(name, replace(spec, seed=number))
        return found
