"""The guide for an installation without containers is true: its variables, commands and certificates are usable."""

import re
import shlex
import subprocess
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from cryptography import x509

from adsserver.identity import spiffe_identity
from controlplane.clients.bootstraps import NAMED_FILES
from controlplane.config import load
from controlplane.variables import MEANINGS
from tests.support.compose import compose_document

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/how-to/install-without-containers.md").read_text(encoding="utf-8")
PYTHON = "/opt/parley/bin/python"
PLACEHOLDERS = {"PARLEY_ENCRYPTION_KEYS": "A" * 43, "PARLEY_SECRET_KEY": "s" * 64}
# What differs outside of a container: where web listens, names of two workers on one machine, where beat writes.
OWN_VALUES = {"0.0.0.0", "parley@%h", "/var/lib/parley/beat.schedule"}  # noqa: S104  never listened on here


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def variables(block: str) -> dict[str, str]:
    lines = [line.partition("=") for line in block.splitlines() if line and not line.startswith("#")]
    return {name: shlex.split(value)[0] for name, _, value in lines}


FILES = [variables(block) for block in blocks("ini") if not block.startswith("[")]
COMMANDS = [shlex.split(line) for line in re.findall(r"^ExecStart=(.*)$", PAGE, re.MULTILINE)]


@pytest.mark.parametrize("replica", [1, 2])
def test_environment_files__of_each_replica__are_a_sound_configuration(replica: int, tmp_path: Path) -> None:
    common, *own = FILES

    config = load(common | PLACEHOLDERS | own[replica - 1], directory=tmp_path)

    assert config.ads_tls is not None
    assert config.ads_address.port == 18000 + replica
    assert config.metrics_address.port == 9110 + replica


def test_variables__each_the_page_names__is_read_by_the_configuration() -> None:
    named = set(re.findall(r"\b(?:PARLEY_[A-Z_]+|DATABASE_URL|REDIS_URL)\b", PAGE))

    assert named
    assert named - set(MEANINGS) == set()


@pytest.mark.parametrize("service", ["migrate", "web", "worker", "beat", "ads"])
def test_units__each_service_of_compose__has_its_command(service: str) -> None:
    document = compose_document()["services"][service]
    words = [*document.get("entrypoint", ["python", "manage.py"]), *document["command"]]
    wanted = {str(word) for word in words[1:]} - OWN_VALUES

    assert [command for command in COMMANDS if command[0] == PYTHON and wanted <= set(command)]


def test_xdsctl__each_command_the_page_runs__is_of_the_environment_it_was_installed_into() -> None:
    lines = [shlex.split(line) for block in blocks("sh") for line in block.splitlines() if "xdsctl" in line]
    installs = [words for words in lines if "install" in words]
    programs = {word for words in lines if "doctor" in words for word in words if "/bin/" in word}

    # What runs Parley has none of xdsctl's packages.
    ((python, *_, source),) = installs
    assert not re.search(r"^(httpx|typer)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert programs == {str(Path(python).parent / "xdsctl")}
    assert next(words for words in lines if words[1:3] == ["-m", "venv"])[3] == str(Path(python).parents[1])
    extra = re.fullmatch(r"/srv/parley/xdsctl\[(\w+)\]", source)
    assert extra is not None
    assert extra[1] in tomllib.loads((ROOT / "xdsctl/pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_clients_files__installed_as_the_page_says__lie_where_bootstraps_look_for_them() -> None:
    (script,) = [block for block in blocks("sh") if "openssl req" in block]
    moves = dict(re.findall(r"^install -D -m \d+ (\S+) (\S+)$", PAGE, re.MULTILINE))

    assert set(moves.values()) == set(asdict(NAMED_FILES).values())
    assert all(source in script or source == "server-ca.pem" for source in moves)
    documented = (ROOT / "docs/reference/bootstraps.md").read_text(encoding="utf-8")
    assert all(f"`{path}`" in documented for path in moves.values())


def test_paths__each_program_the_page_runs__exists() -> None:
    named = set(re.findall(r"/srv/parley/([\w./-]+\w)", PAGE))

    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_certificates__made_as_the_page_says__verify_and_name_a_spiffe_id(tmp_path: Path) -> None:
    (script,) = [block for block in blocks("sh") if "openssl req" in block]

    subprocess.run(["sh", "-euc", script], cwd=tmp_path, check=True, capture_output=True, timeout=60)

    for authority, purpose, leaf in (("server-ca", "sslserver", "server"), ("client-ca", "sslclient", "pay")):
        verify = [
            "openssl",
            "verify",
            "-x509_strict",
            "-purpose",
            purpose,
            "-CAfile",
            f"{authority}.pem",
            f"{leaf}.pem",
        ]
        subprocess.run(verify, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    certificate = x509.load_pem_x509_certificate((tmp_path / "pay.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
    domains = frozenset(FILES[0]["PARLEY_ADS_TRUST_DOMAINS"].split(","))
    assert spiffe_identity({"peer_spiffe_id": [uri.encode()]}, domains) == uri
