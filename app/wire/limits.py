"""How much a body may ask of its decoder."""

from __future__ import annotations

from dataclasses import dataclass

from app.wire.lift import LIFTED_BYTES


@dataclass(frozen=True)
class DecodeLimits:
    """Bounds on what decoding builds, whatever the body's size.

    Attributes:
        max_rank: axes of a tensor.
        max_elements: numbers in one JSON body; those sent as base64 do not count.
        max_lists: lists in one JSON body, tensor data included.
        max_values: maps, lists and their entries in one body, JSON tensor data aside.
        max_depth: maps and lists within each other, JSON tensor data aside.
        max_text: characters of a name or a text value (in msgpack, bytes of UTF-8).
        view_bytes: binary values of fewer bytes are copied, others are views of the body.
    """

    max_rank: int
    max_elements: int
    max_lists: int = 2**20
    max_values: int = 1024
    max_depth: int = 16
    max_text: int = 1024
    view_bytes: int = LIFTED_BYTES
