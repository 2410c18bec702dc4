"""The words of a request: operation, action, the keys of its body; wrong ones are told what is near."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import engine.plans
from engine.errors import Issue, UnknownAction, UnknownField, UnknownOperation, fail
from engine.words import did_you_mean, hints, one_of

ACTIONS = (*engine.plans.ACTIONS, "plan")
"""What can be asked of every operation: the last path segment of the address."""


class Keys:
    """The names of operations, and what their bodies may have at their top; one for each application."""

    def __init__(self, catalogue: Mapping[str, Mapping[str, Any]]) -> None:
        self._names = operation_names(catalogue)
        self._tensors = {name: entry["tensors"] for name, entry in catalogue.items()}
        self._fields = {name: _fields(entry["config"]) for name, entry in catalogue.items()}

    def operation(self, given: str) -> str:
        """An operation's own name.

        Args:
            given: its name or its alias.

        Raises:
            UnknownOperation: there is none of that name.
        """
        name = self._names.get(given)
        if name is None:
            msg = f"no such operation{did_you_mean(given, self._names)}"
            raise fail(UnknownOperation, ("operation",), msg, one_of(sorted(self._names)), given)
        return name

    def action(self, given: str) -> str:
        """An action, which is what was given.

        Raises:
            UnknownAction: there is none of that name.
        """
        if given not in ACTIONS:
            msg = f"no such action{did_you_mean(given, ACTIONS)}"
            raise fail(UnknownAction, ("action",), msg, one_of(ACTIONS), given)
        return given

    def refuse_others(self, operation: str, action: str, others: Sequence[str]) -> None:
        """Refuse the keys of a body that are none of a request's.

        Raises:
            UnknownField: there are such keys; each is told what there is in its place.
        """
        if not others:
            return
        fields, known = self._fields[operation], self._known(operation, action)

        def hint(key: str) -> str:
            return did_you_mean(key, known) or did_you_mean(key, fields, "config.")

        raise UnknownField(
            [self._issue(operation, action, key, known, said) for key, said in hints(others, hint)]
        )

    def _issue(
        self, operation: str, action: str, key: str, known: Sequence[str], hint: str
    ) -> Issue:
        fields = self._fields[operation]
        if key in fields:
            return Issue((key,), "this stands in config, not beside it", f"config.{key}", key)
        if action == "plan" and key in self._tensors[operation]:
            return Issue((key,), "a plan takes shapes, not tensors", f"shapes.{key}", key)
        return Issue((key,), f"no such key here{hint}", f"only {', '.join(known)}", key)

    def _known(self, operation: str, action: str) -> list[str]:
        if action == "plan":
            return ["config", "shapes", "dtype"]
        roles = {name: about.get(action) for name, about in self._tensors[operation].items()}
        taken = [name for name, role in roles.items() if role in ("required", "optional")]
        return ["config", *taken, *(["wants"] if action == "backward" else [])]


def _fields(schema: Mapping[str, Any]) -> frozenset[str]:
    """The names of a config's fields; where it is one of several maps, those of all."""
    return frozenset(
        key for one in [schema, *schema.get("oneOf", [])] for key in one.get("properties", {})
    )


def operation_names(catalogue: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Every name that the URL may have, aliases included, to the operation's own."""
    aliases = {entry["alias"]: name for name, entry in catalogue.items() if "alias" in entry}
    return {**{name: name for name in catalogue}, **aliases}
