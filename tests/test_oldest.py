"""The service works with the oldest version that it takes of each package, not only with those locked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import msgpack
import numpy as np
import pytest

from tests.app.wire.bodies import tensor
from tests.serving import ROOT, serving

FORWARD = {"x": [[[1.0, 2.0, 3.0]]], "weight": [[[1.0, 1.0]]]}


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the oldest of what the service depends on."""
    environment = tmp_path_factory.mktemp("oldest")
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "venv", "--python", sys.executable, "--clear", environment], check=True)
    python = environment / "bin/python"
    install: list[str | Path] = [
        *uv,
        "pip",
        "install",
        "--python",
        python,
        "--resolution",
        "lowest-direct",
    ]
    # The oldest for this Python, not those that nobody has built for it.
    install += ["--only-binary", ":all:"]
    subprocess.run([*install, "-r", ROOT / "pyproject.toml"], check=True)
    return python


@pytest.mark.slow
def test_with_the_oldest_packages_it_serves_computes_and_refuses(
    oldest: Path, tmp_path: Path
) -> None:
    with (
        serving((str(oldest), "-m", "app"), log=tmp_path / "log") as service,
        httpx.Client(base_url=service.url) as client,
    ):
        assert client.get("/readyz").status_code == 200
        assert client.get("/openapi.json").json()["info"]["title"] == "Convoke"
        y = client.post("/v1/conv/forward", json=FORWARD).json()["y"]["data"]
        assert y == [[[3.0, 5.0]]]
        tensors = {"x": [1.0, 2.0, 3.0], "weight": [1.0, 1.0], "dy": [1.0, 10.0]}
        arrays = {name: np.array([[values]], "f4") for name, values in tensors.items()}
        body = msgpack.packb({name: tensor(array) for name, array in arrays.items()})
        kind = {"content-type": "application/msgpack", "accept": "application/json"}
        answer = client.post("/v1/conv/backward", content=body, headers=kind).json()
        assert answer["dx"]["data"] == [[[1.0, 11.0, 10.0]]]
        refused = client.post("/v1/conv/forward", json=FORWARD | {"x": [[1.0]]})
        assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["x", "shape"])
        chunked = client.post(
            "/v1/conv/forward", content=iter([b"{"]), headers={"content-type": "application/json"}
        )
        assert chunked.status_code == 400
        assert chunked.json()["type"] == "/problems/malformed-body"
        # What the parser takes the next method for hangs on uvicorn.
        unknown = client.request("FOO", "/v1/conv/forward")
        assert (unknown.status_code, unknown.headers["connection"]) == (405, "close")
        assert "convoke_requests_total" in client.get("/metrics").text
    assert service.process.returncode == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
