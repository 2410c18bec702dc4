"""One worker process by itself, with the program that the service starts."""

from __future__ import annotations

import asyncio
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import engine
from app.jobs import Answer, Job
from app.workers import arena, child, process
from app.workers.channel import Message
from app.workers.cpus import available_cpus
from app.workers.memory import KEPT_ARENA_BYTES
from app.workers.process import ProcessOptions, ProcessWorker
from app.workers.task import KILLED, SUSPENDED, Result, Task, WorkerDied
from app.workers.turns import NICE
from engine.threads import usable_cpus
from tests.app.dispatching import encode, expected, job, scenario


def task(given: Job) -> Task:
    return Task(given.call, None, given.specs, None, [given.tensors], [given.samples])


async def done(worker: ProcessWorker, given: Job) -> Result:
    await worker.begin([task(given)])
    (result,) = await worker.finish()
    assert isinstance(result, Result)
    return result


async def answered(worker: ProcessWorker, given: Job) -> bool:
    result = await done(worker, given)
    outputs = {name: array[: given.samples] for name, array in result.outputs.items()}
    return encode(Answer(outputs, 1, given.samples)) == expected(given)


@scenario
async def test_it_runs_wherever_the_server_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    worker = ProcessWorker(ProcessOptions(threads=2))
    await worker.start()
    assert await answered(worker, job(samples=2))
    environment = Path(f"/proc/{worker.pid}/environ").read_bytes().split(b"\0")
    assert b"OPENBLAS_NUM_THREADS=1" in environment
    await worker.close()
    assert not Path(f"/proc/{worker.pid}").exists()


@pytest.mark.skipif(available_cpus() < 2, reason="there is nobody's CPU to use")
@scenario
async def test_a_task_has_the_threads_of_helpers_and_the_same_bits() -> None:
    random, shapes = np.random.default_rng(0), {"x": (1, 64, 64, 64), "weight": (64, 64, 3, 3)}
    tensors = {n: random.standard_normal(s, dtype=np.float32) for n, s in shapes.items()}
    specs = {name: engine.TensorSpec(a.shape, "float32") for name, a in tensors.items()}
    call, _ = engine.prepare("conv", "forward", None, specs)
    worker = ProcessWorker(ProcessOptions())
    await worker.start()
    alone = threads(worker)
    results = []
    for helpers in (0, 1, 0):
        await worker.begin([Task(call, None, specs, None, [tensors], [1])], helpers)
        (result,) = await worker.finish()
        assert isinstance(result, Result)
        results.append(result.outputs["y"].tobytes())
        # One that is given up ends by itself, a moment after the answer.
        give_up = time.monotonic() + 10
        while threads(worker) > alone + (helpers > 0) and time.monotonic() < give_up:
            await asyncio.sleep(0.01)
        assert threads(worker) == alone + (helpers > 0)
    assert results == [engine.run(call, tensors)["y"].tobytes()] * 3
    await worker.close()


def threads(worker: ProcessWorker) -> int:
    return len(list(Path(f"/proc/{worker.pid}/task").iterdir()))


def test_before_the_first_task_all_is_imported_blas_has_its_memory_and_nobody_is_kept_awake() -> (
    None
):
    program = """
import numpy
import sys
from app.workers import process_main

def attend(*_):
    print("engine.operations.conv" in sys.modules, *told)

def matmul(a, b):
    told.append(a.shape == b.shape >= (128, 128))

told = []
numpy.matmul = matmul
process_main.engine.set_wakeful = told.append
process_main.attend = attend
process_main.main(["0", "0", "1"])
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE)
    assert done.stdout.split() == [b"True", b"True", b"False"]


@scenario
async def test_memory_is_given_back_after_a_rest_and_not_while_there_is_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "KEEP_S", 0.8)
    worker = ProcessWorker(ProcessOptions(keep_bytes=1 << 12))
    await worker.start()
    large, arenas = job(width=1 << 20), worker._arenas
    for _ in range(2):
        assert await answered(worker, large)
    worker.rest()
    await asyncio.sleep(0.4)
    assert await answered(worker, large)
    await asyncio.sleep(0.8)
    assert any(arena.large for arena in arenas), "nobody said that it rests"
    worker.rest()
    async with asyncio.timeout(30):
        while any(arena.large for arena in arenas):
            await asyncio.sleep(0.05)
    assert await answered(worker, large)
    worker.rest()
    await worker.close()
    touched: list[object] = []
    monkeypatch.setattr(mmap, "mmap", lambda *given, **_: touched.append(given))
    await asyncio.sleep(1.0)
    assert not touched, "its files are closed, and their numbers may be others'"


@scenario
async def test_results_may_be_kept_while_there_are_arenas_for_the_next_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "KEEP_S", 0.2)
    worker = ProcessWorker(ProcessOptions(keep_bytes=1 << 12))
    await worker.start()
    kept: list[tuple[Job, Result]] = []
    while True:
        given = job(width=1 << 16, seed=len(kept))
        result = await done(worker, given)
        assert result.held == worker._arenas[worker._turn].size
        if not worker.lends(result.held, result.held):
            break
        kept.append((given, result))
    assert len(kept) == process.ARENAS - 2
    # As in a queue that is never empty: the next task begins before the last one's results are let go.
    for seed in range(4):
        before = result
        result = await done(worker, job(seed=seed))
        del before
    del result
    worker.rest()
    await asyncio.sleep(0.5)
    for given, each in kept:
        assert encode(Answer(each.outputs, 1, 1)) == expected(given)
    assert sum(arena.large for arena in worker._arenas) == len(kept)
    given, each = kept.pop()
    kept.clear()
    async with asyncio.timeout(30):
        while sum(arena.large for arena in worker._arenas) > 1:
            await asyncio.sleep(0.05)
    assert await answered(worker, job(seed=9))
    await worker.close()
    assert encode(Answer(each.outputs, 1, 1)) == expected(given), "it outlives the worker"


class Unstarted(ProcessWorker):
    """A worker whose process is never started, nor asked."""

    async def ask(self, message: Message) -> asyncio.Future[Message]:  # noqa: ARG002
        return asyncio.get_running_loop().create_future()

    async def fill(self) -> list[object]:
        """Begin so many trips that no arena is left; returns what holds each, in order."""
        held: list[object] = []
        for _ in range(process.ARENAS):
            await self.begin([task(job())])
            held.append(self._outputs)
        return held


@scenario
async def test_a_stop_before_there_is_an_arena_is_for_the_trip_that_waits_for_one_alone() -> None:
    worker = Unstarted(ProcessOptions())
    held = await worker.fill()
    begun = asyncio.create_task(worker.begin([task(job())]))
    await asyncio.sleep(0)
    worker.stop()
    for turn, stopped in ((0, True), (1, False), (0, False)):
        held[turn] = None
        await begun
        assert worker._turn == turn
        assert worker._arenas[turn].stop == stopped
        held[turn] = worker._outputs
        begun = asyncio.create_task(worker.begin([task(job())]))
        await asyncio.sleep(0)
    begun.cancel()
    await worker.close()


@scenario
async def test_a_worker_whose_arenas_nobody_lets_go_of_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "FREE_S", 2 * process.LOOK_S)
    worker = Unstarted(ProcessOptions())
    held = await worker.fill()
    with pytest.raises(WorkerDied, match="stuck"):
        await worker.begin([task(job())])
    held.pop()
    await worker.begin([task(job())])
    await worker.close()


@pytest.mark.parametrize(
    ("nbytes", "held", "lent"),
    [
        (1 << 20, process.LENT_SHARE << 20, True),
        ((1 << 20) - 1, process.LENT_SHARE << 20, False),
        (1 << 30, KEPT_ARENA_BYTES, True),
        (1 << 30, KEPT_ARENA_BYTES + 1, False),
    ],
)
def test_only_arenas_that_are_worth_it_are_lent(nbytes: int, held: int, lent: bool) -> None:
    assert ProcessWorker(ProcessOptions()).lends(nbytes, held) == lent


def test_without_files_enough_none_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def scarce(_: str) -> int:
        if len(opened) == process.ARENAS - 1:
            raise OSError(24, "Too many open files")
        opened.append(os.open(os.devnull, os.O_RDONLY))
        return opened[-1]

    opened: list[int] = []
    monkeypatch.setattr(arena, "open_file", scarce)
    with pytest.raises(OSError, match="Too many"):
        ProcessWorker(ProcessOptions())
    for fd in opened:
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(fd)


@scenario
async def test_very_much_memory_is_given_back_at_once() -> None:
    worker = ProcessWorker(ProcessOptions())
    await worker.start()
    assert await answered(worker, job(width=9 << 20))
    assert any(arena.large for arena in worker._arenas)
    worker.rest()
    assert not any(arena.large for arena in worker._arenas)
    await worker.close()


@scenario
async def test_a_task_beyond_its_memory_is_refused_and_the_next_one_done() -> None:
    worker = ProcessWorker(ProcessOptions(arena_bytes=1 << 16, keep_bytes=1 << 12))
    await worker.start()
    with pytest.raises(MemoryError):
        await worker.begin([task(job(width=1 << 16))])
    assert await answered(worker, job(width=1 << 12))
    assert await answered(worker, job())
    await worker.close()


@pytest.mark.parametrize("program", ["", f"raise SystemExit({child.LIBRARY_STATUS})"])
@scenario
async def test_a_program_that_ends_at_once_is_a_death(program: str) -> None:
    worker = ProcessWorker(ProcessOptions(command=(sys.executable, "-c", program)))
    with pytest.raises(WorkerDied, match="crashed"):
        await worker.start()
    await worker.close()


@scenario
@pytest.mark.parametrize(("urgent", "whose_turn"), [(False, "come_last"), (True, "come_first")])
async def test_one_that_is_killed_before_its_turn_is_settled_is_a_death_too(
    urgent: bool, whose_turn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = getattr(child, whose_turn)

    def late(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        settle(pid)

    async def live() -> None:
        await worker.start()
        told = asyncio.get_running_loop().create_future()
        worker.guard(told)
        await told

    monkeypatch.setattr(child, whose_turn, late)
    worker = ProcessWorker(ProcessOptions(urgent=urgent))
    with pytest.raises(WorkerDied, match=KILLED):
        await live()
    await worker.close()


SIGNALLED = """
import os, sys
os.kill(os.getpid(), int(sys.argv[1]))
from app.workers.process_main import main
main(sys.argv[2:])
"""


@scenario
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signals_are_left_to_the_server_from_the_start(number: signal.Signals) -> None:
    command = (sys.executable, "-c", SIGNALLED, str(int(number)))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    worker = ProcessWorker(ProcessOptions(command=command))
    await worker.start()
    os.kill(worker.pid, number)
    assert await answered(worker, job())
    await worker.close()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


BEGINNING = """
import os, pathlib, sys, time
time.sleep(0.3)
pathlib.Path(sys.argv[1]).write_text(str(os.nice(0)))
from app.workers.process_main import main
main(sys.argv[2:])
"""


@scenario
async def test_it_yields_to_nobody_before_it_is_ready(tmp_path: Path) -> None:
    found = tmp_path / "niceness"
    worker = ProcessWorker(ProcessOptions(command=(sys.executable, "-c", BEGINNING, str(found))))
    await worker.start()
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert found.read_text() == str(ours)
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(ours + NICE, 19)
    await worker.close()


@scenario
async def test_a_program_that_never_gets_ready_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "START_TIMEOUT_S", 0.1)
    monkeypatch.setattr(child, "LEAVE_TIMEOUT_S", 3600)  # is for those that have something to end
    wait = "import threading; threading.Event().wait()"
    worker = ProcessWorker(ProcessOptions(command=(sys.executable, "-c", wait)))
    with pytest.raises(WorkerDied, match="not ready in time"):
        await worker.start()
    async with asyncio.timeout(10):
        await worker.close()
    assert not Path(f"/proc/{worker.pid}").exists()


@scenario
async def test_time_in_which_the_service_was_suspended_is_not_counted_against_a_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child, "WATCH_S", 0.02)
    monkeypatch.setattr(child, "START_TIMEOUT_S", 0.01)  # far less than it takes
    monkeypatch.setattr(child, "lost", lambda since: since)
    worker = ProcessWorker(ProcessOptions())
    await worker.start()
    await worker.close()


@scenario
async def test_one_that_is_suspended_before_it_is_ready_is_not_waited_for() -> None:
    stop = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    worker = ProcessWorker(ProcessOptions(command=(sys.executable, "-c", stop)))
    with pytest.raises(WorkerDied, match=SUSPENDED):
        await worker.start()
    await worker.close()
    assert not Path(f"/proc/{worker.pid}").exists()


LINGERING = """
import os, sys, time
from app.workers.channel import pack
from app.workers.protocol import ready
control = int(sys.argv[2])
os.write(control, pack(ready()))
os.read(control, 1)
if sys.argv[1] == "deaf":
    os.close(control)
time.sleep(60)
"""


@pytest.mark.parametrize("how", ["deaf", "listening"])
@scenario
async def test_one_that_does_not_leave_is_ended_and_who_waits_for_it_told(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LEAVE_TIMEOUT_S", 0.05)
    worker = ProcessWorker(ProcessOptions(command=(sys.executable, "-c", LINGERING, how)))
    await worker.start()
    reply = await worker.ask({})
    async with asyncio.timeout(30):
        if how == "deaf":
            with pytest.raises(WorkerDied, match="crashed"):
                await reply
        await worker.close()
    assert not Path(f"/proc/{worker.pid}").exists()


@scenario
async def test_one_that_could_not_be_started_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def scarce() -> None:
        raise OSError(24, "Too many open files")

    worker = ProcessWorker(ProcessOptions())
    with monkeypatch.context() as without_files:
        without_files.setattr(socket, "socketpair", scarce)
        with pytest.raises(OSError, match="Too many"):
            await worker.start()
    await worker.close()
    for each in worker._arenas:
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(each.fd)


@scenario
async def test_one_that_cannot_be_told_is_a_death() -> None:
    worker = ProcessWorker(ProcessOptions())
    worker._control = Mock(send=lambda data: len(data) - 1)
    with pytest.raises(WorkerDied, match="does not read"):
        await worker.ask({})
    worker._control, theirs = socket.socketpair()
    worker._process = Mock(poll=lambda: 1, returncode=1)
    with worker._control:
        theirs.close()
        with pytest.raises(WorkerDied, match=r"crashed: .*Broken pipe"):
            await worker.ask({})


@scenario
async def test_of_one_that_has_died_no_processor_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may be another's."""
    worker = ProcessWorker(ProcessOptions())
    await worker.start()
    waiting = asyncio.get_running_loop().create_future()
    worker.guard(waiting)
    worker.kill(KILLED)
    with pytest.raises(WorkerDied, match=KILLED):
        await waiting
    monkeypatch.setattr(process, "leave_one", pytest.fail)
    worker.leave_one(True)
    await worker.close()


@scenario
async def test_who_waits_on_a_dead_worker_is_told() -> None:
    worker = ProcessWorker(ProcessOptions())
    await worker.start()
    waiting = asyncio.get_running_loop().create_future()
    worker.guard(waiting)
    worker.kill("deadline")
    with pytest.raises(WorkerDied, match="deadline"):
        await waiting
    with pytest.raises(WorkerDied):
        await worker.begin([task(job())])
    late = asyncio.get_running_loop().create_future()
    worker.guard(late)
    with pytest.raises(WorkerDied):
        await late
    assert not worker.suspended()
    await worker.close()
    assert not Path(f"/proc/{worker.pid}").exists()


@scenario
@pytest.mark.parametrize("how", ["begin", "guard"])
async def test_who_comes_before_the_death_is_settled_is_told_what_it_was(how: str) -> None:
    worker = ProcessWorker(ProcessOptions())
    await worker.start()
    assert worker._control is not None
    os.kill(worker.pid, signal.SIGKILL)
    # Nobody is to hear of it meanwhile.
    assert select.select([worker._control], [], [], 60)[0]
    assert worker._control.recv(1, socket.MSG_PEEK) == b""
    waiting = asyncio.get_running_loop().create_future()
    if how == "guard":
        worker._read()
        worker.guard(waiting)
    with pytest.raises(WorkerDied, match="killed"):
        await (worker.begin([task(job())]) if how == "begin" else waiting)
    await worker.close()


@pytest.mark.skipif(usable_cpus() < 2, reason="there is none to leave")
@scenario
async def test_it_leaves_a_processor_and_takes_it_back() -> None:
    ours = os.sched_getaffinity(0)
    worker = ProcessWorker(ProcessOptions(threads=2))
    await worker.start()
    worker.leave_one(False)
    assert os.sched_getaffinity(worker.pid) == ours
    worker.leave_one(True)
    assert os.sched_getaffinity(worker.pid) == ours - {min(ours)}
    assert await answered(worker, job(samples=2))
    worker.leave_one(False)
    assert os.sched_getaffinity(worker.pid) == ours
    await worker.close()
    worker.leave_one(True)
