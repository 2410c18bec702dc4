"""The scribe: ``python -m app.scribe CONTROL ARENA``, two file descriptors that it inherits."""

from __future__ import annotations

import sys

from app.early import end_with_server

if __name__ == "__main__":
    # Before anything is imported that takes long: until then it would outlive the server if it is stopped.
    end_with_server(int(sys.argv[1]))

from app.scribe.letters import answer
from app.workers.arena import MappedFile
from app.workers.attendant import attend


def main(control: str, arena: str) -> None:
    """Read and write until the server is gone."""
    mapping = MappedFile(int(arena))
    attend(int(control), lambda message: answer(message, mapping))


if __name__ == "__main__":
    main(*sys.argv[1:])
