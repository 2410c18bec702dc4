"""A scribe that misbehaves on request: the body that it is to read says how."""

from __future__ import annotations

import os
import signal
import sys
import threading

from app.scribe.letters import answer
from app.workers.arena import ALIGNMENT, MappedFile
from app.workers.attendant import attend
from app.workers.channel import Message
from tests.app import gates

DIE, FAIL, FOR_EVER, AT_GATE = b'"die"', b'"fail"', b'"for ever"', b'{"at gate":0}'
STARVE = b'"starve"'
"""Crash; raise; never end; wait for the gate; have no memory left."""


def misbehaving(message: Message, arena: MappedFile) -> Message:
    """`answer`, after what the body asks for."""
    arena.remap(message["size"])
    body = bytes(arena._memory[ALIGNMENT : ALIGNMENT + message.get("text", 0)])  # type: ignore[index]
    if body == DIE:
        os.kill(os.getpid(), signal.SIGSEGV)
    if body == FAIL:
        return {"failed": "as asked"}
    if body == STARVE:
        return {"exhausted": True}
    if body == FOR_EVER:
        threading.Event().wait()
    if body == AT_GATE:
        gates.wait()
    return answer(message, arena)


if __name__ == "__main__":
    mapping = MappedFile(int(sys.argv[2]))
    attend(int(sys.argv[1]), lambda message: misbehaving(message, mapping))
