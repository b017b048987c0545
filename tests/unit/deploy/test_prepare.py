"""deploy/compose/prepare.sh makes what docker-compose.yml needs: sound settings, and certificates that gRPC takes."""

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from cryptography import x509

from adsserver.config import TlsFiles
from adsserver.identity.tls import Certificates, server_credentials
from controlplane.config.loading import Config, load
from tests.support.compose import ROOT, compose_document, env_file, interpolated
from xdscore.auth_modes import AuthMode

METHOD = "/test.Greeter/Greet"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checkout in which prepare.sh ran."""

    root: Path

    @property
    def secrets(self) -> Path:
        return self.root / "deploy" / "compose" / "secrets"

    @property
    def variables(self) -> dict[str, str]:
        return env_file((self.root / ".env").read_text(encoding="utf-8"))


def _run(root: Path, *names: str) -> "subprocess.CompletedProcess[str]":
    script = root / "deploy" / "compose" / "prepare.sh"
    return subprocess.run(["sh", str(script), *names], cwd="/", capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    root = tmp_path_factory.mktemp("a checkout")
    (root / "deploy" / "compose").mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "compose" / "prepare.sh", root / "deploy" / "compose")
    ran = _run(root, "xds.example.org", "192.0.2.7")
    assert ran.returncode == 0, ran.stderr
    return Prepared(root)


def _config(prepared: Prepared, service: str) -> Config:
    environment = interpolated(compose_document()["services"][service]["environment"], prepared.variables)
    return load(environment, directory=prepared.root)


@pytest.mark.parametrize("service", ["migrate", "web", "worker", "beat", "ads"])
def test_environment__of_every_process__is_a_sound_configuration(prepared: Prepared, service: str) -> None:
    config = _config(prepared, service)

    assert config.redis_url.startswith("redis://:")
    assert config.home == prepared.root / ".parley"  # the image's own PARLEY_HOME, not compose's business


def test_environment__of_ads__asks_clients_for_tokens_over_tls(prepared: Prepared) -> None:
    config = _config(prepared, "ads")

    assert config.ads_auth is AuthMode.TOKEN
    assert config.ads_tls is not None
    assert len(config.encryption_keys) == 1
    assert config.secret_key == ""  # sessions are web's
    assert config.admin_password == ""


def test_passwords__of_two_checkouts__differ(prepared: Prepared, tmp_path: Path) -> None:
    (tmp_path / "deploy" / "compose").mkdir(parents=True)
    shutil.copy(prepared.root / "deploy" / "compose" / "prepare.sh", tmp_path / "deploy" / "compose")
    _run(tmp_path)

    other = env_file((tmp_path / ".env").read_text(encoding="utf-8"))

    same = {name for name, value in other.items() if prepared.variables[name] == value}
    assert same == {"PARLEY_PUBLIC_URL"}


def test_broker__and_its_clients__share_the_password(prepared: Prepared) -> None:
    line = (prepared.secrets / "redis.conf").read_text(encoding="utf-8")

    assert line == f"requirepass {prepared.variables['REDIS_PASSWORD']}\n"


def test_files__of_people_and_of_containers__are_closed_and_readable(prepared: Prepared) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert mode(prepared.root / ".env") == 0o600
    assert mode(prepared.secrets) == 0o700
    assert mode(prepared.secrets / "ca" / "ca.key") == 0o600
    # Containers run as users that are nobody here; the folder above keeps everybody else out.
    mounted = [prepared.secrets / "redis.conf", *(prepared.secrets / "ads").iterdir()]
    assert {mode(path) for path in mounted} == {0o444}


def test_second_run__of_a_prepared_checkout__changes_nothing(prepared: Prepared) -> None:
    files = [path for path in prepared.root.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}

    ran = _run(prepared.root)

    assert ran.returncode == 0
    assert "nothing, everything was there" in ran.stdout
    assert {path: path.read_bytes() for path in prepared.root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["a b", "x;y", "", "a,DNS:evil"])
def test_name__that_is_none__is_refused_before_anything_is_made(tmp_path: Path, name: str) -> None:
    (tmp_path / "deploy" / "compose").mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "compose" / "prepare.sh", tmp_path / "deploy" / "compose")

    ran = _run(tmp_path, name)

    assert ran.returncode == 1
    assert "is neither a host name nor an IPv4 address" in ran.stderr
    assert not (tmp_path / ".env").exists()


def test_server_certificate__names__are_those_clients_use(prepared: Prepared) -> None:
    certificate = x509.load_pem_x509_certificate((prepared.secrets / "ads" / "server.pem").read_bytes())

    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == ["ads", "localhost", "xds.example.org"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "192.0.2.7"]


def test_deleted_server_certificate__next_run__makes_one_of_the_same_authority(prepared: Prepared) -> None:
    authority = x509.load_pem_x509_certificate((prepared.secrets / "ca" / "ca.pem").read_bytes())
    (prepared.secrets / "ads" / "server.pem").unlink()

    ran = _run(prepared.root, "xds.example.org", "192.0.2.7")

    assert ran.stdout.startswith("Made: server\n")
    renewed = x509.load_pem_x509_certificate((prepared.secrets / "ads" / "server.pem").read_bytes())
    renewed.verify_directly_issued_by(authority)


async def _greeting(prepared: Prepared, authority: bytes) -> bytes:
    """What a client that trusts this authority gets from a server with the certificate of ads."""
    ads = prepared.secrets / "ads"
    method = grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"hello")
    server = grpc.aio.server(handlers=(grpc.method_handlers_generic_handler("test.Greeter", {"Greet": method}),))
    files = TlsFiles(ads / "server.pem", ads / "server.key")
    port = server.add_secure_port("127.0.0.1:0", server_credentials(Certificates(files), client_certificates=False))
    await server.start()
    try:
        async with grpc.aio.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(authority)) as channel:
            answer: bytes = await channel.unary_unary(METHOD, bytes, bytes)(b"", timeout=10)
            return answer
    finally:
        await server.stop(None)


async def test_client__that_trusts_the_trial_authority__is_served_over_grpc(prepared: Prepared) -> None:
    assert await _greeting(prepared, (prepared.secrets / "client" / "server-ca.pem").read_bytes()) == b"hello"


async def test_client__that_trusts_another_authority__does_not_talk(prepared: Prepared, tmp_path: Path) -> None:
    (tmp_path / "deploy" / "compose").mkdir(parents=True)
    shutil.copy(prepared.root / "deploy" / "compose" / "prepare.sh", tmp_path / "deploy" / "compose")
    _run(tmp_path)
    other = tmp_path / "deploy" / "compose" / "secrets" / "client" / "server-ca.pem"

    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await _greeting(prepared, other.read_bytes())

    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_prepare__as_it_lies_in_the_repository__may_be_executed() -> None:
    assert os.access(ROOT / "deploy" / "compose" / "prepare.sh", os.X_OK)
