"""What the ADS process is told when it starts; `manage.py ads` maps the product's configuration to it."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from xdscore.limits import Limits


class AdsConfigError(Exception):
    """The process cannot start with this configuration. The text is one sentence for whoever starts it."""


class AuthMode(Enum):
    """How a stream proves who it is (interfaces.md section 2, PARLEY_ADS_AUTH)."""

    NONE = "none"
    MTLS = "mtls"
    TOKEN = "token"  # noqa: S105 - the name of a mode


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of the server; `client_ca` signs the certificates of clients and is needed in `mtls` mode."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class AdsConfig:
    """The configuration of an ADS process. Addresses are `host:port`; port 0 takes a free one.

    `repeat_errors` is PARLEY_REPEAT_ERRORS=full_state (decisions A3); `public_url` starts Explain links; `home` is
    where several workers keep the files that their metrics are merged from.
    """

    address: str
    metrics_address: str
    home: Path
    public_url: str
    workers: int = 1
    auth: AuthMode = AuthMode.NONE
    tls: TlsFiles | None = None
    trust_domains: frozenset[str] = frozenset()
    repeat_errors: bool = True
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        """Refuse a configuration with which this process would not be safe. Raises AdsConfigError."""
        if self.auth is AuthMode.MTLS:
            if self.tls is None or self.tls.client_ca is None:
                raise AdsConfigError(
                    "PARLEY_ADS_AUTH=mtls needs PARLEY_ADS_TLS_CERT, PARLEY_ADS_TLS_KEY and PARLEY_ADS_TLS_CLIENT_CA."
                )
            if not self.trust_domains:
                raise AdsConfigError("PARLEY_ADS_AUTH=mtls needs PARLEY_ADS_TRUST_DOMAINS to say whom to admit.")
        if self.workers < 1:
            raise AdsConfigError(f"PARLEY_ADS_WORKERS is {self.workers}; it must be at least 1.")


def host_and_port(address: str) -> tuple[str, int]:
    """The host and port of an address like `127.0.0.1:18000` or `[::1]:18000`. Raises AdsConfigError."""
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise AdsConfigError(f"'{address}' is not an address; write it as host:port, for example 127.0.0.1:18000.")
    return host.removeprefix("[").removesuffix("]"), int(port)
