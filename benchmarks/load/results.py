"""What a load showed: rates and latencies of its answers within a window of time."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.load.loads import Spec

COLUMNS = ("due", "sent", "end", "status", "first", "nbytes")
"""What is known of an answer, see `loads.Answered`."""

WARM = 0.2
"""This part of a load, at its beginning, counts for nothing: the server fills up."""


@dataclass(frozen=True)
class Outcome:
    """One load, run once.

    Attributes:
        due, sent, end, status, first, nbytes: of each answer, as in `loads.Answered`.
        batches: requests in the call, of some of the answers.
        retry_after: of each refusal, in seconds.
        memory: bytes of the server's process tree at the end.
        cpu: seconds that the server's process tree computed in the round.
    """

    spec: Spec
    due: NDArray[np.float64]
    sent: NDArray[np.float64]
    end: NDArray[np.float64]
    status: NDArray[np.float64]
    first: NDArray[np.float64]
    nbytes: NDArray[np.float64]
    batches: Sequence[int]
    retry_after: Sequence[int]
    memory: int = 0
    cpu: float = 0.0

    @classmethod
    def read(cls, report: Mapping[str, Any]) -> Outcome:
        """From a line of the generator."""
        table = np.frombuffer(base64.b64decode(report["answers"])).reshape(-1, len(COLUMNS))
        due, sent, end, status, first, nbytes = table.T
        spec = Spec(**report["spec"])
        batches, retry_after = report["batches"], report["retry_after"]
        return cls(spec, due, sent, end, status, first, nbytes, batches, retry_after)

    @property
    def window(self) -> tuple[float, float]:
        """From when the load has warmed up to when its last request was sent."""
        spec = self.spec
        return spec.delay + WARM * spec.seconds, spec.delay + spec.seconds

    @property
    def rate(self) -> float:
        """Answers with status 200 per second."""
        low, high = self.window
        inside = (self.end >= low) & (self.end < high) & (self.status == 200)
        return float(inside.sum() / (high - low))

    @property
    def byte_rate(self) -> float:
        """Bytes of bodies, both ways, per second."""
        low, high = self.window
        inside = (self.end >= low) & (self.end < high) & (self.status == 200)
        return float(self.nbytes[inside].sum() / (high - low))

    def latencies(self) -> NDArray[np.float64]:
        """Seconds from due to an answer with status 200, of first attempts that were due in the window."""
        low, high = self.window
        chosen = (self.due >= low) & (self.due < high) & (self.status == 200)
        chosen &= self.first == 0
        found: NDArray[np.float64] = (self.end - self.due)[chosen]
        return found

    def delays(self, status: int) -> NDArray[np.float64]:
        """Seconds from sent to answered, in the window: what the server alone answers for."""
        low, high = self.window
        chosen = (self.due >= low) & (self.due < high) & (self.status == status)
        found: NDArray[np.float64] = (self.end - self.sent)[chosen]
        return found

    def latency(self, quantile: float) -> float:
        """A quantile of the latencies of accepted requests, in seconds; NaN where there is none."""
        found = self.latencies()
        return float(np.quantile(found, quantile)) if found.size else float("nan")

    @property
    def batch(self) -> float:
        """Mean requests in a call, over calls: the harmonic mean over requests."""
        return len(self.batches) / sum(1 / size for size in self.batches) if self.batches else 0.0


def pooled(outcomes: Sequence[Outcome], quantile: float) -> float:
    """A quantile of the latencies of several rounds together, in seconds."""
    found = np.concatenate([outcome.latencies() for outcome in outcomes])
    return float(np.quantile(found, quantile)) if found.size else float("nan")


@dataclass(frozen=True)
class Ratio:
    """Of two servers, over paired rounds: the median and the extremes."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
        """From values of rounds that were run next to each other."""
        ratios = np.array(ours) / np.array(theirs)
        return cls(float(np.median(ratios)), float(ratios.min()), float(ratios.max()))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"
