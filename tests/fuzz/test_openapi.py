"""Requests made up from our own OpenAPI document: no 5xx, and no answer but those it describes.

Schemathesis makes them, both well-formed and not, and sends them to a running service.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import engine
from app.routes.openapi import describe
from app.settings import Settings
from tests.serving import serving

EXAMPLES = 40
"""Requests for each operation of the document and each mode."""

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

DOCUMENT = schemathesis.openapi.from_dict(describe(engine.operations(), Settings()))
# An operation that cannot be read ends this, for it has no `ok`.
OPERATIONS = [found.ok() for found in DOCUMENT.get_all_operations()]  # type: ignore[union-attr]


@schemathesis.serializer("application/msgpack")
def packed(_: Any, value: Any) -> Any:
    """A made-up body as msgpack, whose integers have at most 64 bits."""
    return value if isinstance(value, bytes) else msgpack.packb(_fitting(value))


def _fitting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fitting(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_fitting(entry) for entry in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-(1 << 63), min(value, (1 << 64) - 1))
    return value


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a service runs; it ends by itself with exit code 0."""
    with serving(log=tmp_path_factory.mktemp("openapi") / "log") as service:
        yield service.url
    assert service.process.returncode == 0


# What takes nothing cannot be asked wrongly.
CASES = [
    pytest.param(operation, mode, id=f"{operation.method} {operation.path} {mode.value}")
    for operation in OPERATIONS
    for mode in GenerationMode
    if operation.method == "post" or mode is GenerationMode.POSITIVE
]


@pytest.mark.parametrize(("operation", "mode"), CASES)
def test_every_operation(operation: Any, mode: GenerationMode, url: str) -> None:
    statuses: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        answer = case.call_and_validate(base_url=url, checks=CHECKS, timeout=120)
        # Only who sets a deadline can miss it.
        late = answer.status_code == 504 and "X-Deadline-Ms" in case.headers
        assert answer.status_code < 500 or late, answer.text
        statuses.add(answer.status_code)

    ask()
    assert statuses
