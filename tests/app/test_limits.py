"""What `GET /v1/limits` says."""

from __future__ import annotations

import pytest

from app.limits import FIXED, Fixed, limits, table
from app.options import load
from app.settings import ROWS


def test_limits_say_what_they_are() -> None:
    found = limits(load({"CONVOKE_MAX_BODY_BYTES": "5"}))
    assert found["max_body_bytes"] == {
        "value": 5,
        "unit": "bytes",
        "help": "Largest request body.",
        "setting": "CONVOKE_MAX_BODY_BYTES",
    }
    needed = {"body", "json", "output", "workspace", "queue", "held"}
    assert {f"max_{name}_bytes" for name in needed} <= found.keys()
    assert {"max_flops", "max_tensor_rank", "max_queue_requests"} <= found.keys()
    assert not {"api_keys", "host", "port"} & found.keys()


def test_fixed_limits_stand_beside_them_and_have_no_setting() -> None:
    found = limits(load({}))
    assert found["max_body_values"]["value"] == 1024
    assert {each.name for each in FIXED} == {
        name for name, each in found.items() if each["setting"] is None
    }
    assert not {each.name for each in FIXED} & {each.name for each in ROWS}


@pytest.mark.parametrize("fixed", FIXED, ids=lambda fixed: fixed.name)
def test_the_table_has_each(fixed: Fixed) -> None:
    assert f"| `{fixed.name}` | {fixed.value} | {fixed.unit} | {fixed.help} |\n" in table()
