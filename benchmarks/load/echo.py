"""Server (a): raw ASGI that sends each body back, the limit of HTTP here."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from benchmarks.load.baseline import serve


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Send the body back."""
    if scope["type"] != "http":
        return
    pieces: list[bytes] = []
    more = True
    while more:
        message = await receive()
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    serve(app)
