"""The guide for an installation without containers is true: its variables, commands and certificates are usable."""

import re
import subprocess
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from adsserver.identity.identification import spiffe_identity
from controlplane.clients.bootstraps import NAMED_FILES
from controlplane.config.loading import load
from controlplane.config.variables import MEANINGS
from tests.support.systemd import FOLDER, unit_names, variables_of

ROOT = Path(__file__).resolve().parents[3]
HOW_TO = ROOT / "docs/how-to"
PAGES = {name: (HOW_TO / name).read_text(encoding="utf-8") for name in (
    "install-without-containers.md", "backup-and-upgrade.md", "rotate-client-ca.md",
)}  # fmt: skip
PAGE = PAGES["install-without-containers.md"]


def blocks(language: str, page: str = PAGE) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def containing(text: str, page: str = PAGE) -> str:
    (script,) = [block for block in blocks("sh", page) if text in block]
    return script


@pytest.mark.parametrize("page", PAGES)
def test_commands__of_each_block__are_sound_shell(page: str) -> None:
    for block in blocks("sh", PAGES[page]):
        read = subprocess.run(["sh", "-n"], input=block, capture_output=True, text=True, timeout=10, check=False)

        assert (read.returncode, read.stderr) == (0, ""), block


@pytest.mark.parametrize("page", PAGES)
def test_variables__each_the_page_names__is_read_by_the_configuration(page: str) -> None:
    named = set(re.findall(r"\b(?:PARLEY_[A-Z_]+|DATABASE_URL|REDIS_URL)\b", PAGES[page]))

    assert named
    assert named - set(MEANINGS) == set()


@pytest.mark.parametrize("page", PAGES)
def test_units__each_the_page_names__exists(page: str) -> None:
    named = set(re.findall(r"\bparley-(?:web|worker|beat|ads|prepare|backup)\b", PAGES[page]))
    have = {re.sub(r"@?\.service$", "", name) for name in unit_names()}

    assert named
    assert named <= have
    if page == "install-without-containers.md":
        assert named == have


def test_paths__each_file_of_the_checkout_that_a_page_installs_or_runs__exists() -> None:
    text = "\n".join(PAGES.values())
    named = set(re.findall(r"(?:/opt/parley/current/|\$release\"?/|[ (])(deploy/[\w./-]+\w)", text))

    assert {"deploy/systemd/sysusers.conf", "deploy/systemd/database.sql", "deploy/nginx/parley-web.conf"} <= named
    assert [name for name in named if not list(ROOT.glob(f"{name}*"))] == []


def test_release__what_is_copied__is_what_an_image_has() -> None:
    (line,) = [each for each in PAGE.splitlines() if each.startswith("cp -r LICENSE")]
    copied = set(line.split()[2:-1])
    image = {each[1:] for each in (ROOT / ".dockerignore").read_text().splitlines() if each.startswith("!")}

    assert {each for each in copied if not (ROOT / each).exists()} == set()
    assert copied - {"deploy", "requirements-deep.txt"} == image - {"deploy/docker"}


def test_environment_file__filled_in_as_the_page_says__is_a_sound_configuration(tmp_path: Path) -> None:
    script = containing("sed -f /dev/stdin")
    fill = script[script.index("sed -f") : script.index("END\nchown") + len("END\n")]
    fill = fill.replace("/etc/parley/parley.env", str(tmp_path / "parley.env"))
    fill = fill.replace("parley.example.com|\n", "console.corp|\n").replace("ads.example.com|\n", "ads.corp|\n")

    subprocess.run(["sh", "-euc", f"database_password=d1 redis_password=r2\n{fill}"], cwd=ROOT, check=True, timeout=10)

    variables = variables_of((tmp_path / "parley.env").read_text())
    config = load(variables | {"PARLEY_HOME": str(tmp_path)}, directory=tmp_path)
    assert config.database is not None
    assert (config.database.password, config.redis_url) == ("d1", "redis://:r2@127.0.0.1:6379/0")
    assert (config.public_url, str(config.ads_public_address)) == ("https://console.corp", "ads.corp:18000")
    assert len(config.encryption_keys) == 1
    assert config.secret_key != "SESSION_SECRET"
    assert set(variables) == set(variables_of((FOLDER / "parley.env").read_text()))


def test_xdsctl__each_command_the_page_runs__is_of_the_environment_it_was_installed_into() -> None:
    script = containing("xdsctl[")
    environment = re.search(r"^/usr/bin/python3 -m venv (\S+)$", script, re.MULTILINE)
    extra = re.search(r"^(\S+)/bin/python -m pip install '\./xdsctl\[(\w+)\]'$", script, re.MULTILINE)

    # What runs Parley has none of xdsctl's packages.
    assert not re.search(r"^(httpx|typer)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert environment is not None
    assert extra is not None
    assert environment[1] == extra[1]
    assert f"ln -sfn {extra[1]}/bin/xdsctl /usr/local/bin/xdsctl\n" in script
    assert extra[2] in tomllib.loads((ROOT / "xdsctl/pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_clients_files__installed_as_the_page_says__lie_where_bootstraps_look_for_them() -> None:
    moves = re.findall(r"^install -m \d+ \S+ (/etc/parley/tls/\S+)", PAGE, re.MULTILINE)

    assert set(moves) == set(asdict(NAMED_FILES).values())
    documented = (ROOT / "docs/reference/bootstraps.md").read_text(encoding="utf-8")
    assert all(f"`{path}`" in documented for path in moves)


def test_prometheus__of_the_page__asks_web_and_each_replica_by_the_shipped_rules_names() -> None:
    (page,) = [yaml.safe_load(block) for block in blocks("yaml")]
    shipped = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())

    assert [job["job_name"] for job in page["scrape_configs"]] == [job["job_name"] for job in shipped["scrape_configs"]]
    asked = [target for job in page["scrape_configs"] for each in job["static_configs"] for target in each["targets"]]
    assert asked == [f"127.0.0.1:{port}" for port in (9101, 9103, 9104, 9111, 9112)]


def _verified(folder: Path, authority: str, purpose: str, leaf: str) -> None:
    verify = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", f"{authority}.pem", f"{leaf}.pem"]
    subprocess.run(verify, cwd=folder, check=True, capture_output=True, timeout=60)


def test_certificates__made_and_rotated_as_the_pages_say__verify_and_name_a_spiffe_id(tmp_path: Path) -> None:
    def run(script: str) -> None:
        subprocess.run(["sh", "-euc", script], cwd=tmp_path, check=True, capture_output=True, timeout=60)

    run(containing("for ca in server-ca client-ca"))

    for authority, purpose, leaf in (
        ("server-ca", "sslserver", "server"),
        ("server-ca", "sslserver", "console"),
        ("client-ca", "sslclient", "pay"),
    ):
        _verified(tmp_path, authority, purpose, leaf)
    before = _identity(tmp_path)
    run(containing("> both.pem", PAGES["rotate-client-ca.md"]))
    assert len(x509.load_pem_x509_certificates((tmp_path / "both.pem").read_bytes())) == 2
    _verified(tmp_path, "both", "sslclient", "pay")
    run(containing("-CA client-ca-2027.pem", PAGES["rotate-client-ca.md"]))
    _verified(tmp_path, "client-ca-2027", "sslclient", "pay")
    _verified(tmp_path, "both", "sslclient", "pay")
    assert before == _identity(tmp_path)


def _identity(folder: Path) -> str:
    certificate = x509.load_pem_x509_certificate((folder / "pay.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
    domains = frozenset(variables_of((FOLDER / "parley.env").read_text())["PARLEY_ADS_TRUST_DOMAINS"].split(","))
    assert spiffe_identity({"peer_spiffe_id": [uri.encode()]}, domains) == uri
    return uri
