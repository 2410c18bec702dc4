"""What can be wrong with a request, as named errors.

    EngineError                 a user's mistake; each carries one or more issues
    ├── UnknownOperation        no operation of that name
    ├── UnknownAction           not `forward` or `backward`
    └── InvalidRequest          well-formed but meaningless
        ├── UnknownField        a config field or tensor that the operation does not have
        ├── MissingField        a required config field or tensor that was not given
        ├── InvalidValue        a config value outside what the field accepts
        ├── DtypeMismatch       element types that do not go together
        ├── ShapeMismatch       shapes that do not fit together
        ├── EmptyOutput         the layer would have no output at all
        └── InvalidIndices      an element of `indices` outside its plane
    Stopped                     the caller asked the computation to stop; nobody's mistake

Everything else that the engine raises is a bug of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Loc = tuple[str | int, ...]


@dataclass(frozen=True)
class Issue:
    """One thing that is wrong.

    Attributes:
        loc: path of the field, for example ``("config", "stride", 0)`` or ``("weight", "shape", 1)``.
        msg: one sentence.
        expected: what would have been accepted, where that can be said.
        got: what was found.
    """

    loc: Loc
    msg: str
    expected: str | None = None
    got: object | None = None

    def __str__(self) -> str:
        text = f"{'.'.join(map(str, self.loc))}: {self.msg}" if self.loc else self.msg
        if self.expected is not None:
            text += f" (expected {self.expected}, got {self.got!r})"
        return text


class EngineError(Exception):
    """A user's mistake, explained field by field in `issues`."""

    def __init__(self, issues: Issue | Sequence[Issue]) -> None:
        self.issues: tuple[Issue, ...] = (issues,) if isinstance(issues, Issue) else tuple(issues)
        super().__init__("; ".join(map(str, self.issues)))


class UnknownOperation(EngineError):
    """There is no operation of that name."""


class UnknownAction(EngineError):
    """There is no action of that name."""


class InvalidRequest(EngineError):
    """Well-formed but meaningless; also raised itself where issues of several kinds come together."""


class UnknownField(InvalidRequest):
    """A config field or tensor that the operation does not have."""


class MissingField(InvalidRequest):
    """A required config field or tensor was not given."""


class InvalidValue(InvalidRequest):
    """A config value is not one that the field accepts."""


class DtypeMismatch(InvalidRequest):
    """Element types that the tensor cannot have, or that do not go together."""


class ShapeMismatch(InvalidRequest):
    """Shapes that do not fit together."""


class EmptyOutput(InvalidRequest):
    """The layer's output would have no elements along a spatial axis."""


class InvalidIndices(InvalidRequest):
    """An element of `indices` lies outside the plane it points into."""


class Stopped(Exception):
    """The caller's `stop` asked the computation to end before it was done."""


def fail(
    kind: type[EngineError], loc: Loc, msg: str, expected: str | None = None, got: object = None
) -> EngineError:
    """Make an error of one issue, to be raised by the caller."""
    return kind(Issue(loc, msg, expected, got))


def merged(errors: Sequence[EngineError]) -> EngineError:
    """Join several errors into one: of their common kind, or InvalidRequest where kinds differ."""
    kinds = {type(error) for error in errors}
    kind = kinds.pop() if len(kinds) == 1 else InvalidRequest
    return kind([issue for error in errors for issue in error.issues])
