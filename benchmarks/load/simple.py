"""Server (b): the simplest FastAPI route that does the work, in the event loop.

``python -m benchmarks.load.simple [THREADS]``; by default the engine uses what it does by default.
"""

from __future__ import annotations

import sys
from typing import Any

import msgpack
import numpy as np
from fastapi import FastAPI, Request, Response

import engine
from benchmarks.load.baseline import serve

app = FastAPI()


@app.post("/v1/{operation}/{action}")
async def compute(operation: str, action: str, request: Request) -> Response:
    """Decode, compute, encode."""
    fields: dict[str, Any] = msgpack.unpackb(await request.body())
    config = fields.pop("config", None)
    tensors = {
        name: np.frombuffer(value["data"], value["dtype"]).reshape(value["shape"])
        for name, value in fields.items()
    }
    outputs = getattr(engine, action)(operation, config, **tensors)
    answer = {
        name: {"dtype": array.dtype.name, "shape": array.shape, "data": array.tobytes()}
        for name, array in outputs.items()
    }
    return Response(msgpack.packb(answer), media_type="application/vnd.msgpack")


if __name__ == "__main__":
    if sys.argv[1:]:
        engine.set_threads(int(sys.argv[1]))
    serve(app)
