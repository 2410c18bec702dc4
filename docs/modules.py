"""The table of modules in docs/kernels.md, made from the docstrings of engine/kernels."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent / "engine" / "kernels"


def table() -> str:
    """Every module with the first sentence of its docstring, package by package, in Markdown."""
    packages = sorted(path.parent for path in KERNELS.rglob("__init__.py"))
    return "\n".join(line for package in packages for line in _package(package))


def _package(folder: Path) -> Iterator[str]:
    name = folder.relative_to(KERNELS.parent).as_posix()
    yield from (f"**`{name}/`**: {_docstring(folder / '__init__.py')}", "")
    yield from ("| module | what it is |", "| --- | --- |")
    for path in sorted(folder.glob("*.py")):
        if path.stem != "__init__":
            yield f"| `{path.stem}` | {_first_sentence(_docstring(path))} |"
    yield ""


def _docstring(path: Path) -> str:
    """A module's docstring; raises ValueError where there is none."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if text is None:
        raise ValueError(f"{path} has no docstring")
    return text


def _first_sentence(text: str) -> str:
    """Up to the first full stop before white space, on one line that a cell of a table may hold."""
    sentence = re.split(r"(?<=\.)\s", text, maxsplit=1)[0]
    return " ".join(sentence.split()).replace("|", "\\|")
