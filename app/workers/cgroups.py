"""What the control groups of this process limit: a container's quotas, of which libraries know nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")
"""Where the file systems ``proc`` and ``sys`` are mounted."""


def unified(root: Path, *names: str) -> Iterator[list[str]]:
    """The words of files of version 2 (kernel documentation, cgroup-v2.rst), here and further up."""
    return _words(root / "sys/fs/cgroup", _own_group(root, ""), names)


def controlled(root: Path, controller: str, *names: str) -> Iterator[list[str]]:
    """The words of files of a controller of version 1, here and further up."""
    return _words(root / "sys/fs/cgroup" / controller, _own_group(root, controller), names)


def _own_group(root: Path, controller: str) -> str:
    """This process's group under a controller, from lines as ``4:cpu,cpuacct:/group``."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        match line.split(":", 2):
            case [_, controllers, group] if controller in controllers.split(","):
                return group.strip("/")
    return ""


def _words(folder: Path, group: str, names: tuple[str, ...]) -> Iterator[list[str]]:
    """The words of all files in a group's folder, and in each above it, since any limit counts."""
    path = folder / group
    above = (parent for parent in path.parents if parent.is_relative_to(folder))
    for each in (path, *above):
        if words := [word for name in names for word in _text(each / name).split()]:
            yield words


def _text(path: Path) -> str:
    """A file's text; empty where there is no such file, as on other systems."""
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""
