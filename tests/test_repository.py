"""What must hold for the repository as a whole, whoever changes it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from app.setting import PREFIX
from app.settings import ROWS
from app.settings import table as settings_table
from benchmarks.kernels.cases import CASES
from docs import generated
from docs.measured import described
from docs.reasons import REASONS

ROOT = Path(__file__).resolve().parent.parent
BINARY = {".png", ".gif", ".npz", ".ico", ".woff2", ".jpg", ".msgpack"}

# Bodies for the decoders: bytes on purpose.
CORPUS = Path("tests/fuzz/corpus")

# Modules over 300 lines, and why each is one concept all the same.
LONG_MODULES = {
    "app/problems.py": "one table; a row is all that is said of one kind of problem",
}
LONGEST = 300


def _files() -> list[Path]:
    """What is in the repository or would be: tracked files, and new ones that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def _texts(*suffixes: str) -> Iterator[tuple[str, str]]:
    """Each text file, of the given suffixes if any, with its path from the root."""
    for path in _files():
        if CORPUS in path.relative_to(ROOT).parents:
            continue
        if path.suffix not in BINARY and (not suffixes or path.suffix in suffixes):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def _lines_with(pattern: str, *suffixes: str) -> list[str]:
    compiled = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in _texts(*suffixes)
        if name != "tests/test_repository.py"
        for number, line in enumerate(text.splitlines(), 1)
        if compiled.search(line)
    ]


def _imports(path: Path) -> set[str]:
    """The top-level names of the modules that a file imports, relative ones aside."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
    return {name.partition(".")[0] for name in found}


def test_no_path_of_anybodys_machine() -> None:
    assert _lines_with(r"(?<![\w.*])/(home|Users|root|work|mnt)/\w") == []


def test_no_download_addresses() -> None:
    """Registries are each user's own to configure, in lock files above all."""
    hosts = r"pypi\.org|pythonhosted\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|npmmirror"
    options = r"^\s*--(extra-)?index-url|^\s*--find-links|^\s*--trusted-host"
    assert _lines_with(rf"{hosts}|{options}") == []


def test_lock_files_name_versions_and_hashes_only() -> None:
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert [lock.stem for lock in locks] == ["base", "bench", "build", "dev"]
    line = re.compile(
        r"[a-z0-9-]+(\[[a-z0-9,-]+\])?==[\w.+!]+( ; .+)? \\"
        r"|    --hash=sha256:[0-9a-f]{64}( \\)?|    # .+"
    )
    for lock in locks:
        wrong = [text for text in lock.read_text().splitlines() if not line.fullmatch(text)]
        assert wrong == [], lock.name


def test_the_locks_agree_with_each_other() -> None:
    def pins(name: str) -> dict[tuple[str, str], str]:
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        found = re.findall(r"^([a-z0-9-]+)==(\S+)(?: ; (.+))? \\$", text, re.MULTILINE)
        return {(package, marker): version for package, version, marker in found}

    for smaller, larger in (("base", "dev"), ("dev", "bench")):
        one, other = pins(smaller), pins(larger)
        assert {key: other[key] for key in one.keys() & other.keys()} == {
            key: one[key] for key in one.keys() & other.keys()
        }
    assert pins("base").keys() <= pins("dev").keys()


def test_the_pages_lock_has_hashes_and_no_addresses() -> None:
    packages = json.loads((ROOT / "app/web/package-lock.json").read_text())["packages"]
    installed = {name: entry for name, entry in packages.items() if name}
    assert installed
    assert [name for name, entry in installed.items() if "integrity" not in entry] == []
    assert [name for name, entry in installed.items() if "resolved" in entry] == []


def test_nothing_left_open() -> None:
    words = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "Not" + "Implemented" + "Error"))
    assert _lines_with(rf"\b({words})\b", ".py", ".ts", ".md", ".yml", ".sh", ".toml", "") == []


def test_nothing_unpickles() -> None:
    """A pickle that somebody sends is a program that somebody runs. Tests may make hostile ones."""
    forbidden = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
    forbidden |= {"multiprocessing", "msgpack_numpy"}
    for path in _files():
        if path.suffix == ".py" and ROOT / "tests" not in path.parents:
            assert not _imports(path) & forbidden, path
    assert _lines_with(r"allow_pickle\s*=\s*True", ".py") == []


def test_the_engine_imports_numpy_and_the_standard_library_only() -> None:
    allowed = {"engine", "numpy", *sys.stdlib_module_names}
    for path in sorted((ROOT / "engine").rglob("*.py")):
        assert _imports(path) <= allowed, path


def test_modules_hold_one_concept() -> None:
    """A module that has grown long is split, or is entered above with its reason."""
    lengths = {
        name: text.count("\n")
        for name, text in _texts(".py", ".ts", ".css")
        if text.count("\n") > LONGEST and "tests/" not in name
    }
    assert set(lengths) == set(LONG_MODULES), lengths
    assert all(LONG_MODULES.values())


@pytest.mark.parametrize("name", generated.DOCUMENTS)
def test_generated_parts_are_up_to_date(name: str) -> None:
    """`make docs` writes them."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert generated.filled(text) == text


def test_every_case_of_the_benchmark_has_its_reasons() -> None:
    """What stops it, forward and backward (`docs/performance.md`)."""
    assert set(REASONS) == set(CASES)
    assert all(all(texts) for texts in REASONS.values())


def test_a_case_is_told_in_a_few_words() -> None:
    """Its input and windows, and what is not usual of it."""
    assert described(CASES["res-down"]) == "8×128×56×56, 128 of 3×3, stride 2"
    assert described(CASES["dcgan-deconv"]) == "16×256×8×8, 128 of 4×4, stride 2, transposed"
    assert described(CASES["max-2-last"]) == "8×64×112×112, 2×2, stride 2, channels last"


def test_every_setting_is_documented() -> None:
    assert settings_table() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_setting_that_is_named_exists() -> None:
    known = {row.variable for row in ROWS}
    for name, text in _texts(".md", ".yml", ".sh", ".py", "", ".ts"):
        if name.startswith(("tests/", "app/web/e2e", "app/web/vite")):
            continue
        named = set(re.findall(rf"\b{PREFIX}[A-Z][A-Z_]*[A-Z]\b", text))
        assert named <= known, name


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs/decisions"
    pages = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [page[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    listed = re.findall(r"\((\d{4}-[a-z0-9-]+\.md)\)", (folder / "README.md").read_text())
    assert listed == pages


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    page = json.loads((ROOT / "app/web/package.json").read_text(encoding="utf-8"))
    names = {re.split(r"[<>=;\s]", each)[0] for each in wanted}
    names |= {*page["dependencies"], *page["devDependencies"]}
    pages = (path.read_text(encoding="utf-8") for path in (ROOT / "docs/decisions").glob("0*.md"))
    reasons = "\n".join(pages)

    def named(name: str) -> bool:
        return bool(re.search(rf"(?<![\w@/-]){re.escape(name)}(?![\w-])", reasons, re.IGNORECASE))

    assert names
    assert [name for name in sorted(names) if not named(name)] == []


def test_links_between_documents_lead_somewhere() -> None:
    link = re.compile(
        r"\]\((?!https?:|#|mailto:)([^)#\s]+)|(?:src|href|srcset)=\"(?!https?:|#)([^\"#]+)\""
    )
    for name, text in _texts(".md"):
        for groups in link.findall(text):
            target = groups[0] or groups[1]
            assert ((ROOT / name).parent / target).exists(), f"{name}: {target}"


def test_paths_that_documents_name_exist() -> None:
    """The built page aside, which is not in the repository."""
    path = re.compile(r"`((?:app|benchmarks|deploy|docs|engine|examples|tests)/[\w./-]*)`")
    for name, text in _texts(".md"):
        named = set(path.findall(text)) - {"app/web/dist"}
        missing = [found for found in named if not (ROOT / found).exists()]
        assert missing == [], name


def test_names_that_tell_of_the_code_are_in_it() -> None:
    """A function, module or option that is renamed is renamed there as well."""
    sources = [text for path, text in _texts(".py") if not path.startswith("tests/")]
    words = {word for text in sources for word in re.findall(r"\w+", text)}
    words |= {part for path in _files() for part in path.name.split(".")}
    for name in ("architecture", "bytes", "kernels", "performance", "precision"):
        text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        named = set(re.findall(r"`([A-Za-z_][\w.]*)`", text))
        assert named, name
        assert [each for each in named if not words.issuperset(each.split("."))] == [], name


def test_images_are_small_enough_to_clone() -> None:
    large = {str(path.relative_to(ROOT)): path.stat().st_size for path in _files()}
    assert {name: size for name, size in large.items() if size > 1 << 20} == {}
