"""The service against its own limits: ``python -m benchmarks.service [--short]``.

Starts the servers, loads them in turn, and writes ``service.md``, ``service.json`` and
``service.png``; see `service_report.LEGEND`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.load.bench import Bench
from benchmarks.load.servers import ROOT
from benchmarks.service_report import as_json, markdown, plot, targets_table
from benchmarks.service_scenarios import FULL, SCENARIOS, SHORT, Findings
from benchmarks.service_targets import checks

OUTPUT = ROOT / "docs" / "benchmarks"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--short", action="store_true", help="about four minutes instead of twenty")
    parser.add_argument(
        "--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), help="which parts to run"
    )
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="folder to write to (default: docs/benchmarks)"
    )
    return parser.parse_args()


def main() -> None:
    """Run, print and write."""
    arguments = _arguments()
    found = Findings()
    started = time.monotonic()
    with Bench() as bench:
        for name in arguments.only:
            print(f"{name} …", flush=True)
            SCENARIOS[name](bench, SHORT if arguments.short else FULL, found)
    seconds = time.monotonic() - started
    report = markdown(found)
    print(report)
    print(targets_table(checks(found)))
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "service.md").write_text(report)
    about = {"mode": "short" if arguments.short else "full", "seconds": round(seconds)}
    (arguments.output / "service.json").write_text(as_json(found, about))
    if found.ladder:
        plot(found, arguments.output / "service.png")
    print(f"Written to {arguments.output} after {seconds:.0f} s.")


if __name__ == "__main__":
    main()
