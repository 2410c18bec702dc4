"""The image, its composition, and the wheel: what is installed is what serves."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from zipfile import ZipFile

import pytest
import yaml

from app.settings import Settings
from tests.serving import ROOT, serving

STEPS = "deploy/image_steps.sh"


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile, its continuation lines joined."""

    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """The words of an exec form; fails on a shell form."""
        words = json.loads(self.rest)
        assert isinstance(words, list)
        return words


def _stages() -> list[list[Instruction]]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    stages: list[list[Instruction]] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            stages.append([])
        stages[-1].append(Instruction(name, rest.strip()))
    return stages


def _only(stage: list[Instruction], name: str) -> Instruction:
    found = [instruction for instruction in stage if instruction.name == name]
    assert len(found) == 1, name
    return found[0]


def _tool(name: str) -> str:
    """A program of the environment that runs the tests."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    assert found, f"{name} is in the development extra; it is not installed"
    return found


def _compose() -> dict[str, dict[str, Any]]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services = loaded["services"]
    assert isinstance(services, dict)
    return services


def test_the_dockerfile_passes_the_linter() -> None:
    subprocess.run([_tool("hadolint"), "Dockerfile"], cwd=ROOT, check=True)


def test_the_composition_fits_its_schema() -> None:
    command = [_tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    subprocess.run([*command, "docker-compose.yml"], cwd=ROOT, check=True)


def test_base_images_are_pinned_to_a_release() -> None:
    tags = [stage[0].rest.split(" ")[0] for stage in _stages()]
    tags += [str(service["image"]) for service in _compose().values() if "build" not in service]
    assert [tag for tag in tags if not re.search(r":v?\d+\.\d+\.\d+", tag)] == []


def test_stages_run_nothing_but_the_tested_steps() -> None:
    runs = [i.words for stage in _stages() for i in stage if i.name == "RUN"]
    assert [words[0] for words in runs] == [STEPS] * 4
    assert [words[1] for words in runs] == ["packages", "page", "dependencies", "service"]


def test_packages_of_the_page_run_no_scripts_where_they_are_installed() -> None:
    copied = [i.rest.split() for i in _stages()[0] if i.name == "COPY"]
    (files,) = [words for words in copied if "app/web/package.json" in words]
    assert "app/web/.npmrc" in files
    assert "ignore-scripts=true" in (ROOT / "app/web/.npmrc").read_text().split()


def test_the_final_stage_runs_as_nobody_and_without_a_shell() -> None:
    final = _stages()[-1]
    assert "slim" in final[0].rest
    assert not [i for i in final if i.name == "RUN"]
    user = _only(final, "USER").rest
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert _only(final, "ENTRYPOINT").words == ["convoke"]
    assert _only(final, "CMD").words == ["serve"]
    check = _only(final, "HEALTHCHECK").rest
    assert json.loads(check.partition("CMD")[2])[0] == "python"


@pytest.mark.parametrize("name", ["convoke", "prometheus"])
def test_containers_have_no_more_than_they_need(name: str) -> None:
    service = _compose()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    limits = service["deploy"]["resources"]["limits"]
    assert limits.keys() == {"cpus", "memory", "pids"}
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_whoever_runs_a_container_gives_it_time_to_end() -> None:
    text = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    found = re.findall(r"(?:--stop-timeout|-t|GracePeriodSeconds:) (\d+)", text)
    assert len(found) == 4
    given = {int(each) for each in found} | {int(_compose()["convoke"]["stop_grace_period"][:-1])}
    # The seconds before SIGTERM that Kubernetes is told to wait are of the same time.
    (before,) = re.findall(r"time\.sleep\((\d+)\)", text)
    assert min(given) > Settings().drain_timeout_s + int(before)


def test_prometheus_scrapes_the_service_once_it_is_healthy() -> None:
    services = _compose()
    assert services["prometheus"]["profiles"] == ["monitoring"]
    assert "profiles" not in services["convoke"]
    assert services["prometheus"]["depends_on"] == {"convoke": {"condition": "service_healthy"}}
    words = json.loads(_only(_stages()[-1], "HEALTHCHECK").rest.partition("CMD")[2])
    assert services["convoke"]["healthcheck"]["test"] == ["CMD", *words]
    (job,) = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"] == [{"targets": ["convoke:8000"]}]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image's builder is sent: a checkout without anything built."""
    copy = tmp_path_factory.mktemp("image") / "src"
    left_out = shutil.ignore_patterns("node_modules", "dist", "__pycache__", "test-results")
    for name in ("engine", "app", "requirements", "deploy"):
        shutil.copytree(ROOT / name, copy / name, ignore=left_out)
    # Here the page is built in the same folder, whose packages git ignores, and so the builds after it.
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture(scope="module")
def installed(checkout: Path) -> Path:
    """The environment that the image's steps make, its stages beside each other as Docker has them."""
    environment = checkout.parent / "opt"
    environ = os.environ | {"PYTHON": sys.executable}

    def take(*steps: list[str]) -> None:
        for step in steps:
            subprocess.run([checkout / STEPS, *step], env=environ, cwd=checkout.parent, check=True)

    with ThreadPoolExecutor() as pool:
        page = pool.submit(take, ["packages"], ["page"])
        take(["dependencies", str(environment)])
        page.result()
    take(["service", str(environment)])
    return environment


def _get(url: str) -> tuple[int, str, str]:
    with urlopen(url, timeout=10) as response:
        return response.status, response.headers["content-type"], response.read().decode()


def _snapshot(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_image_serves_from_its_own_files(installed: Path, tmp_path: Path) -> None:
    """From an empty directory, with the page, and without writing a file anywhere it lives."""
    home = tmp_path / "home"
    home.mkdir()
    environ = {
        "PATH": f"{installed / 'bin'}:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "TMPDIR": str(home),
    }
    before = _snapshot(installed)
    command = [str(installed / "bin/convoke"), "serve"]
    with serving(command, cwd=home, environ=environ, log=tmp_path / "log") as running:
        status, kind, page = _get(running.url + "/")
        assert (status, kind.split(";")[0]) == (200, "text/html")
        for asset in re.findall(r'(?:src|href)="(?:\./)?([^"#:]+)"', page):
            assert _get(f"{running.url}/{asset}")[0] == 200
        assert _get(running.url + "/docs")[0] == 200
        assert "@msgpack/msgpack" in _get(running.url + "/licences.md")[2]
        body = {"x": [[[1, 2, 3]]], "weight": [[[1, 1]]]}
        request = Request(
            running.url + "/v1/conv/forward",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urlopen(request, timeout=10) as response:
            assert json.loads(response.read())["y"]["data"] == [[[3, 5]]]
        assert _healthcheck(installed, running.url) == 0
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(60) == 0
    assert _healthcheck(installed, running.url) == 1
    assert _snapshot(installed) == before
    assert _snapshot(home) == set()


def _healthcheck(installed: Path, url: str) -> int:
    # A container is told of a proxy where its host's Docker has one.
    environ = os.environ | {"CONVOKE_PORT": url.rpartition(":")[2], "http_proxy": "http://[::1]:1"}
    command = [installed / "bin/python", ROOT / "deploy/healthcheck.py"]
    return subprocess.run(command, env=environ, check=False, capture_output=True).returncode


@pytest.mark.slow
def test_the_environment_of_the_image_holds_the_lock_and_the_service_only(installed: Path) -> None:
    names = {
        re.sub(r"[-_.]+", "-", path.name.split("-")[0]).lower()
        for path in installed.glob("lib/python*/site-packages/*.dist-info")
    }
    locked = re.findall(
        r"^([a-z0-9-]+)==", (ROOT / "requirements/base.txt").read_text(), re.MULTILINE
    )
    assert names <= {*locked, "convoke"}
    assert "convoke" in names


@pytest.mark.slow
def test_distributions_hold_the_built_page_and_no_page_sources(
    installed: Path, checkout: Path, tmp_path: Path
) -> None:
    assert (installed / "bin/convoke").exists()
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as opened:
        names = opened.namelist()
        metadata = message_from_bytes(opened.read("convoke-0.1.0.dist-info/METADATA"))
        licences = opened.read("app/web/dist/licences.md").decode()
    files = {name.removeprefix("app/web/dist/") for name in names}
    assert "index.html" in files
    notices = {"NOTICE", "LICENSE", "swagger-ui-bundle.js.LICENSE.txt"}
    notices = {"licences.md", *(f"swagger/{name}" for name in notices)}
    assert notices <= files
    named = {f"app/web/dist/{name}" for name in notices}
    assert set(metadata.get_all("License-File", [])) == {"LICENSE", *named}
    # Swagger UI has the second, and contains what has the third.
    known = {"MIT", "Apache-2.0", "BSD-3-Clause", *re.findall(r"^## .*\((.*)\)$", licences, re.M)}
    assert set(metadata["License-Expression"].split(" AND ")) == known
    assert {name for name in names if "app/web/" in name and "/dist/" not in name} == set()
    assert {name.split("/")[0] for name in names} == {"app", "engine", "convoke-0.1.0.dist-info"}
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    assert {"app/web/dist/index.html", "app/web/package-lock.json", "engine/errors.py"} <= inside
    assert not any("node_modules" in name for name in inside)


def test_a_step_that_does_not_exist_is_refused() -> None:
    run = subprocess.run([ROOT / STEPS, "bake"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr[:6]) == (2, "usage:")


def test_the_healthcheck_says_what_is_wrong(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "deploy/healthcheck.py"],
        env={"CONVOKE_PORT": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert run.stderr.startswith("not ready: ")
