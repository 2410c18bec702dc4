"""Tensors to a running service and back: msgpack over HTTP, as any client may write it.

A tensor travels as `{"dtype": str, "shape": [int, ...], "data": bytes}`, little-endian, row-major.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx
import msgpack
import numpy as np

Array = np.ndarray[Any, Any]
MSGPACK = "application/vnd.msgpack"


class ServiceError(Exception):
    """The service refused a request, or cannot be reached; the message says why."""


class Service:
    """A connection to the service at `url`, kept alive from one request to the next."""

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        self._client = httpx.Client(
            base_url=url, timeout=timeout, headers={"content-type": MSGPACK, "accept": MSGPACK}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def forward(
        self, operation: str, config: Mapping[str, Any] | None = None, **tensors: Array
    ) -> dict[str, Array]:
        """The outputs of an operation, by name."""
        return self._request(operation, "forward", {"config": dict(config or {})}, tensors)

    def backward(
        self,
        operation: str,
        config: Mapping[str, Any] | None = None,
        wants: list[str] | None = None,
        **tensors: Array,
    ) -> dict[str, Array]:
        """The gradients of an operation, by name: all of them, or those in `wants`."""
        fields: dict[str, Any] = {"config": dict(config or {})}
        if wants is not None:
            fields["wants"] = wants
        return self._request(operation, "backward", fields, tensors)

    def _request(
        self, operation: str, action: str, fields: dict[str, Any], tensors: Mapping[str, Array]
    ) -> dict[str, Array]:
        packed = {name: _pack(array) for name, array in tensors.items()}
        try:
            response = self._client.post(
                f"/v1/{operation}/{action}", content=msgpack.packb(fields | packed)
            )
        except httpx.TransportError as error:
            raise ServiceError(
                f"no answer from {self._client.base_url} ({error}); start it with `make serve`"
            ) from error
        if response.is_error:
            raise ServiceError(f"{operation}/{action}: {response.status_code} {response.text}")
        answer = msgpack.unpackb(response.content)
        return {name: _unpack(tensor) for name, tensor in answer.items() if name != "info"}


def _pack(array: Array) -> dict[str, Any]:
    little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "data": little_endian.data.cast("B") if array.size else b"",
    }


def _unpack(tensor: Mapping[str, Any]) -> Array:
    dtype = np.dtype(tensor["dtype"]).newbyteorder("<")
    array: Array = np.frombuffer(tensor["data"], dtype).reshape(tensor["shape"])
    return array
