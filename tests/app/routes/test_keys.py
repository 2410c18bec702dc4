"""Words that a request cannot have: the answer tells what there is in their place."""

from __future__ import annotations

import pytest

import engine
from app.routes import keys
from app.routes.keys import Keys
from engine.errors import Issue, UnknownAction, UnknownField, UnknownOperation
from engine.words import MOST


def refused(operation: str, action: str, *others: str) -> tuple[Issue, ...]:
    with pytest.raises(UnknownField) as caught:
        Keys(engine.operations()).refuse_others(operation, action, others)
    return caught.value.issues


@pytest.mark.parametrize(
    ("operation", "action", "expected"),
    [
        ("conv", "forward", "only config, x, weight, bias"),
        ("conv", "backward", "only config, x, weight, bias, dy, wants"),
        ("max_pool", "backward", "only config, x, indices, dy, wants"),
        ("max_unpool", "forward", "only config, x, indices"),
        ("activation", "plan", "only config, shapes, dtype"),
    ],
)
def test_a_key_that_nobody_knows_is_told_those_that_there_are(
    operation: str, action: str, expected: str
) -> None:
    issue = Issue(("foo",), "no such key here", expected, "foo")
    assert refused(operation, action, "foo") == (issue,)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("W", "; did you mean weight?"),
        ("strides", "; did you mean config.stride?"),
        ("want", ""),
        ("foo", ""),
    ],
)
def test_a_key_of_another_library_is_told_ours(key: str, hint: str) -> None:
    (issue,) = refused("conv", "forward", key)
    assert issue.msg == f"no such key here{hint}"


@pytest.mark.parametrize(
    ("operation", "action", "field"),
    [
        ("conv", "forward", "stride"),
        ("max_pool", "plan", "kernel"),
        ("activation", "backward", "alpha"),
    ],
)
def test_a_field_of_config_beside_it_is_told_where_it_belongs(
    operation: str, action: str, field: str
) -> None:
    issue = Issue((field,), "this stands in config, not beside it", f"config.{field}", field)
    assert refused(operation, action, field) == (issue,)


def test_every_key_is_named_in_its_place() -> None:
    locs = [issue.loc for issue in refused("conv", "forward", "kernel", "groups", "")]
    assert locs == [("kernel",), ("groups",), ("",)]


def test_no_other_key_is_no_mistake() -> None:
    Keys(engine.operations()).refuse_others("conv", "forward", ())


def test_a_tensor_in_a_plan_is_told_that_a_plan_takes_shapes() -> None:
    issue = Issue(("x",), "a plan takes shapes, not tensors", "shapes.x", "x")
    assert refused("conv", "plan", "x") == (issue,)


def test_a_thousand_keys_are_refused_without_a_look_at_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    def nothing_close(name: object, *_: object) -> str:
        asked.append(name)
        return ""

    monkeypatch.setattr(keys, "did_you_mean", nothing_close)
    names = [f"wieght{number}" for number in range(1000)]
    assert [issue.loc for issue in refused("conv", "forward", *names)] == [
        (each,) for each in names
    ]
    assert len(set(asked)) == MOST


def test_operations_and_actions_are_known_by_their_names() -> None:
    keys = Keys(engine.operations())
    assert keys.operation("max_pool") == "max_pool"
    for alias, name in {
        entry["alias"]: name for name, entry in engine.operations().items() if "alias" in entry
    }.items():
        assert keys.operation(alias) == name
    assert keys.action("plan") == "plan"
    with pytest.raises(UnknownOperation) as no_operation:
        keys.operation("max_pol")
    assert [issue.msg for issue in no_operation.value.issues] == [
        "no such operation; did you mean max_pool?"
    ]
    with pytest.raises(UnknownAction) as no_action:
        keys.action("backwards")
    assert [issue.msg for issue in no_action.value.issues] == [
        "no such action; did you mean backward?"
    ]
