"""Measures the kernels, prints tables, and writes JSON, Markdown and plots where asked to."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kernels import machine, optional
from benchmarks.kernels.cases import CASES, WEAK
from benchmarks.kernels.session import Session
from benchmarks.kernels.tables import document
from benchmarks.kernels.targets import plain
from engine.threads import default_threads

SHORT, LONG = (45.0, 2), (900.0, 3)
"""Seconds of measuring, and rounds of each measurement while there is time; one after that."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 where everything was measured, whatever the targets say."""
    options = _parser().parse_args(arguments)
    if options.plot and optional.find("matplotlib") is None:
        raise SystemExit("matplotlib is missing: install the project with its extra 'bench'")
    if optional.find("torch") is None:
        print("PyTorch is not installed: measuring without it", file=sys.stderr)
    start = time.perf_counter()
    names = tuple(dict.fromkeys(options.case)) or tuple(WEAK if options.weak else CASES)
    with machine.threads(options.threads):
        session = Session(options.threads, *(SHORT if options.short else LONG), _progress)
        complete = not (options.case or options.weak)
        report = session.run([(CASES | WEAK)[name] for name in names], complete=complete)
    print(document(report, markdown=False))
    _write(options.json, json.dumps(plain(report), indent=1, ensure_ascii=False))
    _write(options.markdown, document(report, markdown=True))
    if options.plot:
        from benchmarks.kernels import plots  # matplotlib is optional

        plots.draw(report, options.plot)
    _progress(f"{time.perf_counter() - start:.0f} s in all")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("--short", action="store_true", help="few rounds, under two minutes")
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        choices=sorted(CASES | WEAK),
        metavar="NAME",
        help=f"this case only; may be repeated; one of {', '.join(CASES | WEAK)}",
    )
    parser.add_argument(
        "--weak", action="store_true", help=f"those where NumPy is weak: {', '.join(WEAK)}"
    )
    parser.add_argument(
        "--threads",
        type=_positive,
        default=default_threads(),
        help="threads for everybody; by default as many as the engine takes by itself",
    )
    parser.add_argument("--json", type=Path, help="write everything to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser.add_argument("--plot", type=Path, help="write kernels.png and scaling.png here")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
