"""The units run what docker-compose.yml runs, are shut in, and systemd takes them as they are."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from adsserver.running.process import _STORE_STOP_S
from adsserver.running.server import DRAIN_LIMIT_S
from controlplane.config.loading import load
from tests.support.compose import compose_document
from tests.support.systemd import FOLDER, RELEASE, ROOT, needed, own_settings, unit, unit_names, variables_of

ROLES = {"prepare": "migrate", "web": "web", "worker": "worker", "beat": "beat", "ads@": "ads"}
LONG_RUNNING = ["web", "worker", "beat", "ads@"]
# Where a process of a container listens, and where beat writes there.
OF_CONTAINERS = {"0.0.0.0": "127.0.0.1", "/var/lib/parley/beat.schedule": "/var/lib/parley-beat/beat.schedule"}  # noqa: S104
DEEP_VALIDATION = FOLDER / "worker-deep-validation.conf"
HARDENING = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "PrivateUsers": "yes",
    "ProtectProc": "invisible",
    "ProtectKernelTunables": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectControlGroups": "yes",
    "ProtectClock": "yes",
    "ProtectHostname": "yes",
    "RestrictNamespaces": "yes",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
    "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6",
    "LockPersonality": "yes",
    "MemoryDenyWriteExecute": "yes",
    "CapabilityBoundingSet": "",
    "AmbientCapabilities": "",
    "SystemCallArchitectures": "native",
    "UMask": "0077",
}


def test_units__each_role_of_compose__has_one() -> None:
    assert set(unit_names()) == {f"parley-{role}.service" for role in (*ROLES, "backup")}
    assert {file.name for file in FOLDER.iterdir() if file.suffix in {".target", ".timer"}} == {
        "parley.target",
        "parley-backup.timer",
    }


@pytest.mark.parametrize(("role", "service"), ROLES.items())
def test_unit__its_command__is_that_of_compose(role: str, service: str) -> None:
    document = compose_document()["services"][service]
    entry_point = document.get("entrypoint", ["python", "manage.py"])

    command = unit(f"parley-{role}.service").command()

    assert command[0] == f"{RELEASE}/deploy/systemd/run"
    assert command[1:] == [OF_CONTAINERS.get(word, word) for word in [*entry_point[1:], *document["command"]]]


@pytest.mark.parametrize("name", unit_names())
def test_unit__what_it_may_do__is_nothing_beyond_its_own_directories(name: str) -> None:
    found = unit(name)

    assert {key: found.one(key) for key in HARDENING} == HARDENING
    assert found.settings["SystemCallFilter"] == ("@system-service", "~@privileged")
    assert set(own_settings(FOLDER / name)) & {*HARDENING, "SystemCallFilter"} == set()
    assert (found.one("User"), found.one("StateDirectoryMode")) in {("parley", "0700"), ("parley", "")}
    assert all(path.startswith("/var/backups/parley") for path in found.words("ReadWritePaths"))


@pytest.mark.parametrize("name", unit_names())
def test_unit__file_of_the_secrets__is_read_by_systemd_and_by_no_process(name: str) -> None:
    found = unit(name)

    assert "-/etc/parley/parley.env" in found.words("InaccessiblePaths")
    assert ("-/etc/parley/tls" in found.words("InaccessiblePaths")) == (name != "parley-ads@.service")


def test_unit__beat__is_told_neither_the_database_nor_a_key() -> None:
    secret = {"DATABASE_URL", "PARLEY_ENCRYPTION_KEYS", "PARLEY_SECRET_KEY", "PARLEY_ADMIN_PASSWORD", "PARLEY_MAIL_URL"}
    secret.add("PARLEY_OIDC_CLIENT_SECRET")

    assert set(unit("parley-beat.service").words("UnsetEnvironment")) == secret


@pytest.mark.parametrize("role", LONG_RUNNING)
def test_unit__process_that_ends__is_started_again_for_ever_after_a_pause(role: str) -> None:
    found = unit(f"parley-{role}.service")

    assert (found.one("Restart"), found.one("StartLimitIntervalSec")) == ("always", "0")
    assert int(found.one("RestartSec")) >= 1
    assert (found.one("PartOf"), found.one("WantedBy")) == ("parley.target", "parley.target")


@pytest.mark.parametrize("role", LONG_RUNNING)
def test_unit__home__is_its_own_and_made_by_systemd(role: str) -> None:
    found = unit(f"parley-{role}.service")
    homes = {unit(f"parley-{each}.service").one("StateDirectory") for each in LONG_RUNNING}

    assert f"PARLEY_HOME=/var/lib/{found.one('StateDirectory')}" in found.words("Environment")
    assert len(homes) == len(LONG_RUNNING)


def test_unit__ads__has_time_to_drain_and_a_file_for_each_stream() -> None:
    found = unit("parley-ads@.service")
    (limit,) = (compose_document()["services"]["ads"]["ulimits"]["nofile"]["soft"],)

    assert int(found.one("TimeoutStopSec")) > DRAIN_LIMIT_S + 2 * _STORE_STOP_S
    assert int(found.one("LimitNOFILE")) == limit


@pytest.mark.parametrize("instance", ["1", "2"])
def test_environment_file__with_each_replicas_addresses__is_a_sound_configuration(
    instance: str, tmp_path: Path
) -> None:
    (tmp_path / "etc" / "parley").mkdir(parents=True)
    text = (FOLDER / "parley.env").read_text(encoding="utf-8")
    made = {"ENCRYPTION_KEY": "A" * 43, "SESSION_SECRET": "s" * 64, "DATABASE_PASSWORD": "d", "REDIS_PASSWORD": "r"}
    for placeholder, value in made.items():
        text = re.sub(rf'(?<=[":]){placeholder}(?=[@"])', value, text)
    (tmp_path / "etc" / "parley" / "parley.env").write_text(text, encoding="utf-8")

    config = load(unit("parley-ads@.service").environment(instance, tmp_path), directory=tmp_path)

    assert config.ads_tls is not None
    assert str(config.ads_address) == f"0.0.0.0:1800{instance}"
    assert str(config.metrics_address) == f"127.0.0.1:911{instance}"
    assert str(config.home) == f"/var/lib/parley-ads-{instance}"


def test_environment_file__of_one_replica__is_stronger_than_that_of_all(tmp_path: Path) -> None:
    (tmp_path / "etc" / "parley").mkdir(parents=True)
    (tmp_path / "etc" / "parley" / "parley.env").write_text('PARLEY_ADS_ADDRESS="127.0.0.1:1"\n')
    (tmp_path / "etc" / "parley" / "ads-1.env").write_text('PARLEY_ADS_ADDRESS="127.0.0.1:2"\n')

    replicas = [unit("parley-ads@.service").environment(each, tmp_path)["PARLEY_ADS_ADDRESS"] for each in ("1", "2")]

    assert replicas == ["127.0.0.1:2", "127.0.0.1:1"]


def test_drop_in_of_deep_validation__allows_what_bubblewrap_needs_and_nothing_else() -> None:
    # Tried under a real systemd: with one word less Envoy is not started, and XDS2008 has bubblewrap's reason.
    assert own_settings(DEEP_VALIDATION) == {
        "RestrictNamespaces": ("user mnt pid net ipc uts cgroup",),
        "SystemCallFilter": ("@mount capset",),
        "RestrictAddressFamilies": ("AF_NETLINK",),
    }


def test_tmpfiles__every_directory__is_closed_to_others() -> None:
    lines = [shlex.split(line, comments=True) for line in (FOLDER / "tmpfiles.conf").read_text().splitlines()]
    made = {path: (mode, user, group) for kind, path, mode, user, group, _ in filter(None, lines) if kind == "d"}

    assert made == {
        "/etc/parley": ("0750", "root", "parley"),
        "/etc/parley/tls": ("0750", "root", "parley"),
        "/var/lib/parley": ("0700", "parley", "parley"),
        "/var/backups/parley": ("0700", "parley", "parley"),
    }


def test_environment_file__every_line__is_one_that_the_wrapper_and_systemd_read_alike() -> None:
    lines = [line for line in (FOLDER / "parley.env").read_text().splitlines() if line and not line.startswith("#")]

    assert [line for line in lines if not re.fullmatch(r'[A-Z_]+="[^"\\$`\']+"', line)] == []
    assert len(variables_of("\n".join(lines))) == len(lines)


# What systemd itself says.


def _installed(folder: Path, *, deep: bool = False) -> Path:
    """The units as a machine has them, whose release is this checkout (by a link: its own path may have a blank)."""
    folder.mkdir()
    release = folder.with_name("release")
    release.symlink_to(ROOT)
    for file in FOLDER.glob("parley[-.]*"):
        if file.is_dir():
            shutil.copytree(file, folder / file.name)
        elif file.suffix in {".service", ".target", ".timer"}:
            text = file.read_text(encoding="utf-8").replace(RELEASE, str(release))
            (folder / file.name).write_text(text, encoding="utf-8")
    if deep:
        (folder / "parley-worker.service.d").mkdir()
        shutil.copy(DEEP_VALIDATION, folder / "parley-worker.service.d" / "20-deep-validation.conf")
    return folder


def _analysed(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60, check=False)


@needed
@pytest.mark.parametrize(("name", "deep"), [*((name, False) for name in unit_names()), ("parley-worker.service", True)])
def test_systemd__judges_how_open_a_unit_is__and_finds_it_shut(name: str, deep: bool, tmp_path: Path) -> None:
    folder = _installed(tmp_path / "units", deep=deep)

    judged = _analysed("security", "--no-pager", "--offline=true", "--threshold=30", str(folder / name))

    assert judged.returncode == 0, judged.stdout + judged.stderr


@needed
def test_systemd__judges_a_unit_without_the_drop_in__and_finds_it_open(tmp_path: Path) -> None:
    folder = _installed(tmp_path / "units")
    shutil.rmtree(folder / "parley-.service.d")

    judged = _analysed("security", "--no-pager", "--offline=true", "--threshold=30", str(folder / "parley-web.service"))

    assert judged.returncode == 1


@needed
def test_systemd__reads_every_unit__and_has_nothing_to_say(tmp_path: Path) -> None:
    folder = _installed(tmp_path / "units", deep=True)
    files = sorted(str(file) for file in folder.iterdir() if file.is_file())

    read = _analysed("verify", "--man=no", *files)

    assert (read.returncode, read.stdout + read.stderr) == (0, "")
