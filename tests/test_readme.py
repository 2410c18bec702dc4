"""Runs the requests of the README and docs/api.md against a service, and compares answers with theirs.

An example is a code block; the block right after it is its output. JSON is compared as JSON.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

import engine
from tests.serving import ROOT, Running, serving

README, API = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/api.md"))
ADDRESS = "http://127.0.0.1:8000"
RUNNERS = {"bash": ["bash"], "python": [sys.executable], "js": ["node"]}
SUFFIXES = {"bash": ".sh", "python": ".py", "js": ".mjs"}
NEEDS = {"bash": "curl", "python": sys.executable, "js": "node"}


@dataclass(frozen=True)
class Example:
    language: str
    code: str
    output_language: str
    output: str

    def __str__(self) -> str:
        return f"{self.language}-{self.code.count(chr(10))}-lines"


def _examples(document: str) -> list[Example]:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
    return [Example(*one, *other) for one, other in pairwise(blocks) if one[0] in RUNNERS]


EXAMPLES = _examples(README)
EXAMPLES_OF_THE_API = _examples(API)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(log=tmp_path_factory.mktemp("readme") / "log") as running:
        yield running


def test_each_language_has_a_forward_and_a_backward_request() -> None:
    for language in RUNNERS:
        code = "".join(example.code for example in EXAMPLES if example.language == language)
        assert re.search(r"/forward\b", code), language
        assert re.search(r"/backward\b", code), language
    assert all(example.output_language in ("json", "text") for example in EXAMPLES)


def test_the_reference_shows_what_the_readme_does_not() -> None:
    code = "".join(example.code for example in EXAMPLES_OF_THE_API)
    for part in ("/plan", '"wants"', '"return_indices"', "/activation/", "tensors=base64"):
        assert part in code, part


@pytest.mark.parametrize("example", EXAMPLES + EXAMPLES_OF_THE_API, ids=str)
def test_examples_do_what_the_documents_say(
    example: Example, service: Running, tmp_path: Path
) -> None:
    if not shutil.which(NEEDS[example.language]):
        pytest.skip(f"{NEEDS[example.language]} is not installed")
    assert ADDRESS in example.code
    script = tmp_path / f"example{SUFFIXES[example.language]}"
    script.write_text(example.code.replace(ADDRESS, service.url), encoding="utf-8")
    run = subprocess.run(
        [*RUNNERS[example.language], script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    if example.output_language == "json":
        assert json.loads(run.stdout) == json.loads(example.output)
    else:
        assert run.stdout == example.output


def test_every_operation_is_in_the_table() -> None:
    (table,) = re.findall(r"## Operations\n(.*?)\n## ", README, re.DOTALL)
    named = set(re.findall(r"^\|(.*?)\|", table, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", " ".join(named))) == set(engine.operations())


def test_commands_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    documents = [README, (ROOT / "CONTRIBUTING.md").read_text()]
    named = {name for text in documents for name in re.findall(r"\bmake ([a-z-]+)", text)}
    assert named - {"the"} <= targets
    assert {"serve", "test", "example-photo", "example-digits"} <= named
