"""The formats on the wire, msgpack and JSON, and nothing of what they carry.

`negotiate` settles the forms of a request and its answer, `decode` and `decode_plan` read bodies, a
`Decoder` those whose like it has read before in less time,
`encode`, `pieces` and `encode_map` write them. No other part of the service knows a format.
"""

from __future__ import annotations

from app.wire.forms import Decoder, Form
from app.wire.lift import Body
from app.wire.limits import DecodeLimits
from app.wire.negotiation import MEDIA_TYPES, Exchange, negotiate
from app.wire.requests import PlanRequest, Request, decode, decode_plan
from app.wire.write import Piece, encode, encode_map, pieces

__all__ = [
    "MEDIA_TYPES",
    "Body",
    "DecodeLimits",
    "Decoder",
    "Exchange",
    "Form",
    "Piece",
    "PlanRequest",
    "Request",
    "decode",
    "decode_plan",
    "encode",
    "encode_map",
    "negotiate",
    "pieces",
]
