"""Services for the tests of faults, one for each set of settings and module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.stress.service import Service, running


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """Two workers and the settings that the service has by itself."""
    with running("--workers", "2") as service:
        yield service


@pytest.fixture(scope="module")
def impatient() -> Iterator[Service]:
    """Two workers, and little patience with clients."""
    with running(
        "--workers", "2",
        header_timeout_s="1", body_timeout_s="2", answer_timeout_s="2", keep_alive_s="2",
        max_body_bytes="16MiB",
    ) as service:  # fmt: skip
        yield service
