"""The REST client as it is given away: its wheel alone, made from the schema, typed, and against a running server."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.stack import ROOT, Parley, running_up

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("rest-client")]

PAGE = ROOT / "docs" / "reference" / "rest-client.md"
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)
SCHEMA = yaml.safe_load((ROOT / "docs" / "reference" / "openapi.yaml").read_text(encoding="utf-8"))
# What the environment of the server would have brought along.
BARE = "import sys\nfor name in ('django', 'controlplane', 'xdscore', 'grpc', 'yaml'):\n    sys.modules[name] = None\n"
READ_ALL = ROOT / "tests" / "support" / "read_all.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rest-client")
    command = [sys.executable, "scripts/rest_client.py", str(folder)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return Path(made.stdout.strip())


@pytest.fixture(scope="module")
def site(wheel: Path) -> Path:
    """The folder into which the wheel was unpacked."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(wheel.parent / "site")
    (wheel.parent / "site" / "sitecustomize.py").write_text(BARE)
    return wheel.parent / "site"


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("rest-client") / "home") as running:
        yield running


def run(site: Path, parley: Parley, program: Path) -> "subprocess.CompletedProcess[str]":
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(site),
        "PARLEY": f"http://127.0.0.1:{parley.web_port}",
        "PARLEY_TOKEN": parley.token,
    }
    return subprocess.run(
        [sys.executable, program],
        env=variables,
        cwd=site.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_wheel__holds_the_client_alone_and_says_that_it_is_typed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        [metadata] = [packed.read(name).decode() for name in names if name.endswith("/METADATA")]

    assert {name.split("/")[0].split("-")[0] for name in names} == {"parley_client"}
    assert "parley_client/py.typed" in names
    assert set(re.findall(r"^Requires-Dist: (\w+)", metadata, re.MULTILINE)) == {"httpx", "attrs"}
    assert "License-File: LICENSE" in metadata


def test_wheel__has_each_operation_of_the_schema_but_the_stream_of_events(site: Path) -> None:
    asked = {
        f"{operation['tags'][0].replace('-', '_')}/{operation['operationId']}"
        for path in SCHEMA["paths"].values()
        for operation in path.values()
    } - {"environments/tail"}

    found = {
        str(file.relative_to(site / "parley_client" / "api"))[:-3] for file in site.glob("parley_client/api/*/*.py")
    }

    assert {each for each in found if not each.endswith("__init__")} == asked


def test_package_and_page__are_what_mypy_asks_for_at_its_strictest(site: Path) -> None:
    example = site / "example.py"
    example.write_text(
        "".join(text for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if kind == "python")
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-incremental",
        "--config-file=",
        "parley_client",
        example.name,
    ]

    said = subprocess.run(command, cwd=site, capture_output=True, text=True, check=False)
    forgotten = site / "forgotten.py"
    forgotten.write_text(
        "from example import refused, resource_get, client\nprint(resource_get.sync('a', 1, client=client))\n"
    )
    mistaken = subprocess.run([*command[:-2], forgotten.name], cwd=site, capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stdout
    assert mistaken.returncode == 1, "what mypy is asked finds nothing"


def test_examples_of_the_page__print_what_it_says(site: Path, parley: Parley) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    program = site.parent / "page.py"
    program.write_text("".join(text for kind, text in blocks if kind == "python"))

    said = run(site, parley, program)

    assert said.stdout == "".join(text for kind, text in blocks if kind == "text"), said.stderr
    assert said.returncode == 0, said.stderr


def test_every_list_and_every_object__is_read_into_its_type(site: Path, parley: Parley) -> None:
    """Whatever the server has of each kind, the client understands."""
    said = run(site, parley, READ_ALL)

    assert said.returncode == 0, said.stderr
    read: dict[str, Any] = json.loads(said.stdout)
    # What is not there, and what asks for more than a path, are answers, too.
    assert {name: status for name, status in read.items() if status not in (200, 404, 422)} == {}
    assert sum(status == 200 for status in read.values()) >= 25
