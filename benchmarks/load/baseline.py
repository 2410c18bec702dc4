"""How the servers that ours is compared with are run: uvicorn as fast as it goes."""

from __future__ import annotations

import socket

import uvicorn
from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        assert sockets is not None
        print(f"ready on http://127.0.0.1:{sockets[0].getsockname()[1]}", flush=True)


def serve(app: ASGIApp) -> None:
    """Serve on a free port until told to end."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(
        app, loop="uvloop", http="httptools", ws="none", access_log=False, log_level="warning"
    )
    _Server(config).run([listener])
