"""The table of settings, and what texts make of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest

from app import __version__
from app.main import create_app
from app.options import SettingsError, load, unknown
from app.setting import MOST, Row
from app.settings import ROWS, Settings, table
from app.visitor import NOBODY
from app.workers.cpus import available_cpus

ROOT = Path(__file__).resolve().parent.parent.parent


def run(
    *arguments: str, output: int = subprocess.PIPE, **environ: str
) -> subprocess.CompletedProcess[str]:
    """The command, in an environment without other settings; `output` is a file to write to."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from app.cli import main; sys.exit(main())",
            *arguments,
        ],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **environ},
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_contract_fixes_some_defaults() -> None:
    settings = load({})
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.workers == available_cpus()
    assert settings.api_keys == settings.cors_origins == ()


def test_every_setting_is_explained() -> None:
    assert [row.name for row in ROWS] == [field.name for field in fields(Settings)]
    for row in ROWS:
        assert row.help.endswith("."), row.name
        assert len(row.help) > 15, row.name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_default_as_shown_is_a_value(row: Row) -> None:
    if " " in row.shown:
        return  # told in words, as it depends on the machine
    assert getattr(load({row.variable: row.shown}), row.name) == getattr(Settings(), row.name)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("max_body_bytes", "3MiB", 3 << 20),
        ("max_body_bytes", " 17 ", 17),
        ("max_flops", "2.5e9", 2_500_000_000),
        ("batching", "off", False),
        ("batching", "True", True),
        ("drain_timeout_s", "0.5", 0.5),
        ("workers", "0", 0),
        ("max_caller_rate", "0", 0.0),
        ("max_caller_rate", "1e-6", 1e-6),
        ("api_keys", "one, two,", ("one", "two")),
        ("api_keys", "", ()),
        ("cors_origins", "https://a.example,http://b.example:8080", None),
        ("cors_origins", "https://xn--exmple-cua.org", ("https://xn--exmple-cua.org",)),
        ("root_path", "/deep/path", "/deep/path"),
    ],
)
def test_texts_are_read(name: str, text: str, value: object) -> None:
    found = getattr(load({f"CONVOKE_{name.upper()}": text}), name)
    assert found == (value if value is not None else tuple(text.split(",")))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("port", "http", "an integer from 0 to 65535"),
        ("port", "65536", "an integer from 0 to 65535"),
        ("port", "8000MiB", "an integer from 0 to 65535"),
        ("workers", "-1", "an integer from 0 to 1024"),
        ("workers", "1.5", "an integer from 0 to 1024"),
        ("max_body_bytes", "1GB", "an integer from 0 to 1e+19, or one with KiB, MiB or GiB"),
        ("drain_timeout_s", "nan", "a number from 0 to 1e+19"),
        ("drain_timeout_s", "inf", "a number from 0 to 1e+19"),
        ("drain_timeout_s", "1_0", "a number from 0 to 1e+19"),
        ("max_queue_bytes", "9" * 400, "an integer from 0 to 1e+19"),
        ("max_queue_requests", "1e99", "an integer from 1 to 1e+19"),
        ("max_caller_rate", "1e-320", "0, or at least 1e-06"),
        ("max_caller_rate", "9e-7", "0, or at least 1e-06"),
        ("batching", "maybe", "true or false"),
        ("log_level", "loud", "debug or info or warning or error"),
        ("root_path", "convoke", "a path as /convoke"),
        ("root_path", "/convoke/", "a path as /convoke"),
        ("cors_origins", "example.org", "origins as https://example.org"),
        (
            "cors_origins",
            "https://a.org,https://exämple.org",
            "origins in ASCII, names as https://xn--",
        ),
        ("api_keys", "käse", "keys of visible ASCII characters"),
        ("api_keys", ",", "a list of at least one, or nothing at all"),
        ("api_keys", " ", "a list of at least one, or nothing at all"),
        ("cors_origins", " , ", "a list of at least one, or nothing at all"),
    ],
)
def test_what_is_no_value_is_refused_in_a_line(name: str, text: str, expected: str) -> None:
    variable = f"CONVOKE_{name.upper()}"
    with pytest.raises(SettingsError) as refused:
        load({variable: text})
    assert str(refused.value).startswith(f"{variable}: expected {expected}")
    assert "\n" not in str(refused.value)


def test_whoever_wants_no_limit_can_have_it() -> None:
    for most in (sys.maxsize, MOST):
        numbers = (row for row in ROWS if row.kind in ("int", "float") and row.high == MOST)
        settings = load({row.variable: str(most) for row in numbers})
        dispatcher = create_app(replace(settings, workers=1)).state.dispatcher
        assert not dispatcher.crowded(1)
        dispatcher.check_room(NOBODY)


def test_an_option_goes_before_its_variable() -> None:
    settings = load({"CONVOKE_PORT": "1", "CONVOKE_HOST": "::1"}, {"port": "2", "host": None})
    assert (settings.port, settings.host) == (2, "::1")


def test_keys_are_shown_nowhere() -> None:
    secret = "s3cr3t"
    assert secret not in repr(load({"CONVOKE_API_KEYS": secret}))
    with pytest.raises(SettingsError) as refused:
        load({"CONVOKE_API_KEYS": f"{secret} with spaces"})
    assert secret not in str(refused.value)


def test_misspelt_variables_are_found() -> None:
    environ = {"CONVOKE_PORT": "1", "CONVOKE_PROT": "1", "PATH": "/bin"}
    assert unknown(environ) == ["CONVOKE_PROT"]


def test_the_command_lists_the_table() -> None:
    done = run("settings")
    assert (done.returncode, done.stdout) == (0, table())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_the_command_says_in_a_line_that_the_table_cannot_be_written() -> None:
    with Path("/dev/full").open("wb") as full:
        done = run("settings", output=full.fileno())
    assert done.returncode == 1
    assert done.stderr == "convoke: the settings cannot be written: No space left on device\n"


def test_the_command_says_nothing_where_its_reader_has_seen_enough() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = run("settings", output=closed.fileno())
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        (["serve", "--port", "x"], {}, "convoke: --port: expected an integer from 0 to 65535"),
        (["serve"], {"CONVOKE_WORKERS": "many"}, "convoke: CONVOKE_WORKERS: expected an integer"),
        (
            ["serve", "--prot", "1"],
            {},
            "convoke: unrecognized arguments: --prot 1; did you mean --port?",
        ),
        (["serve", "--wokers=1"], {}, "convoke: unrecognized arguments: --wokers=1; did you mean"),
        (["--port", "1"], {}, "convoke: options follow a command: convoke serve --port"),
        (["sevre"], {}, "convoke: argument command: invalid choice: 'sevre'"),
        ([], {}, "convoke: the following arguments are required: command"),
    ],
)
def test_a_wrong_command_is_refused_in_a_line(
    arguments: list[str], environ: dict[str, str], message: str
) -> None:
    done = run(*arguments, output=subprocess.PIPE, **environ)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_the_version_is_that_of_the_distribution() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version == __version__
    assert run("--version").stdout == f"convoke {version}\n"
    assert json.loads((ROOT / "app/web/package.json").read_text())["version"] == version
    assert f"image: convoke:{version}\n" in (ROOT / "docker-compose.yml").read_text()


def test_what_kubernetes_tells_of_a_service_of_our_name_is_no_setting() -> None:
    told = {
        "CONVOKE_PORT": "tcp://10.0.0.7:8000",
        "CONVOKE_PORT_8000_TCP": "tcp://10.0.0.7:8000",
        "CONVOKE_PORT_8000_TCP_ADDR": "10.0.0.7",
        "CONVOKE_PORT_8000_TCP_PORT": "8000",
        "CONVOKE_PORT_8000_TCP_PROTO": "tcp",
        "CONVOKE_SERVICE_HOST": "10.0.0.7",
        "CONVOKE_SERVICE_PORT": "8000",
        "CONVOKE_SERVICE_PORT_HTTP": "8000",
    }
    assert load(told) == Settings()
    assert unknown(told) == []
    assert load(told, {"port": "9"}).port == 9
