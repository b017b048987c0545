"""What the ADS process is told when it starts; `manage.py ads` maps the product's configuration to it."""

from dataclasses import dataclass, field
from pathlib import Path

from xdscore.auth_modes import AuthMode
from xdscore.limits import Limits


class AdsConfigError(Exception):
    """The process cannot start with this configuration. The text is one sentence for whoever starts it."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of the server's certificate and key. `client_ca` holds the certificate authorities (CA) that sign the
    certificates of clients; it is needed where clients show any.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class AdsConfig:
    """The configuration of an ADS process.

    address, metrics_address: where streams, and where metrics and health are served, as `host:port`; port 0 takes a
      free one.
    rest_address: where clients poll over REST; empty: nowhere.
    home: the installation's directory; several workers keep there the files that their metrics are merged from.
    public_url: the start of links to Explain in errors.
    repeat_errors: PARLEY_REPEAT_ERRORS=full_state (decisions A3).
    """

    address: str
    metrics_address: str
    home: Path
    public_url: str
    rest_address: str = ""
    workers: int = 1
    auth: AuthMode = AuthMode.NONE
    tls: TlsFiles | None = None
    trust_domains: frozenset[str] = frozenset()
    repeat_errors: bool = True
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        """Check that this configuration is safe, such as TLS where clients prove who they are. Raises AdsConfigError
        when it is not.
        """
        if self.auth.facts.certificates:
            if self.tls is None or self.tls.client_ca is None:
                raise AdsConfigError(
                    f"PARLEY_ADS_AUTH={self.auth} needs PARLEY_ADS_TLS_CERT, PARLEY_ADS_TLS_KEY "
                    "and PARLEY_ADS_TLS_CLIENT_CA."
                )
            if not self.trust_domains:
                raise AdsConfigError(
                    f"PARLEY_ADS_AUTH={self.auth} needs PARLEY_ADS_TRUST_DOMAINS to say whom to admit."
                )
        if self.workers < 1:
            raise AdsConfigError(f"PARLEY_ADS_WORKERS is {self.workers}; it must be at least 1.")


def host_and_port(address: str) -> tuple[str, int]:
    """The host and port of an address like `127.0.0.1:18000` or `[::1]:18000`. Raises AdsConfigError."""
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise AdsConfigError(f"'{address}' is not an address; write it as host:port, for example 127.0.0.1:18000.")
    return host.removeprefix("[").removesuffix("]"), int(port)
