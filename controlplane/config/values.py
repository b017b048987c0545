"""The values an environment variable can hold, and how each is read.

Pure. A parser raises ValueError with the rest of a sentence that starts with the variable's name ("must be ..."), and
never repeats the value: it may be a secret, and `controlplane.config.loading` adds it where it is not.
"""

import binascii
import re
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

Network: TypeAlias = IPv4Network | IPv6Network
E = TypeVar("E", bound=StrEnum)

ENCRYPTION_KEY_BYTES: Final = 32  # AES-256
_SECRET_KEY_CHARS: Final = 50  # Django's check security.W009
_PORT_MAX: Final = 65_535
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
# SPIFFE ID standard, section 2.1: lower case letters, digits, dots, dashes and underscores; at most 255 bytes.
_TRUST_DOMAIN: Final = re.compile(r"[a-z0-9._-]{1,255}")


class RepeatErrors(StrEnum):
    """When a client is sent its open resource errors again (decisions A3)."""

    FULL_STATE = "full_state"
    NEVER = "never"


class SecondFactor(StrEnum):
    """Whether whoever signs in by a password of Parley's own has to have a second factor."""

    OPTIONAL = "optional"
    REQUIRED = "required"


class MailSecurity(StrEnum):
    """How the connection to the mail server is protected."""

    NONE = "none"
    STARTTLS = "starttls"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class Address:
    """A host and port at which a process listens. `host`: a name, or an IP address without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"

    @property
    def unspecified(self) -> bool:
        """Whether the address means every interface (0.0.0.0, ::)."""
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Postgres:
    """The parts of a PostgreSQL server's URL. `options`: libpq's connection parameters, out of the URL's query."""

    host: str
    port: str
    user: str
    name: str
    password: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Mail:
    """The parts of a mail server's URL. `sender`: the address that notifications come from."""

    host: str
    port: int
    security: MailSecurity
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class WebhookAllow:
    """The networks and hosts in private address space that webhooks may nevertheless reach (decisions U22)."""

    networks: tuple[Network, ...] = ()
    hosts: tuple[str, ...] = ()


def address(text: str) -> Address:
    """The address that `host:port` or `[ipv6]:port` names. Raises ValueError."""
    example = "must be host:port, for example 127.0.0.1:8000 or [::1]:8000"
    host, separator, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not separator or not port.isascii() or not port.isdecimal():
        raise ValueError(example)
    if not 1 <= int(port) <= _PORT_MAX:
        raise ValueError(f"must have a port from 1 to {_PORT_MAX}")
    host = host[1:-1] if bracketed else host
    if not (_is_ipv6(host) if bracketed else _HOST_NAME.fullmatch(host)):
        raise ValueError(example)
    return Address(host, int(port))


def reachable(text: str) -> Address:
    """The address that `host:port` or `[ipv6]:port` names, to which clients can connect. Raises ValueError, also for an
    address that means every interface.
    """
    found = address(text)
    if found.unspecified:
        raise ValueError("must be an address that clients can connect to, for example ads.example.com:18000")
    return found


def whole(text: str, minimum: int, maximum: int, unit: str) -> int:
    """The whole number in a text, between `minimum` and `maximum`. `unit` is named in the error. Raises ValueError."""
    try:
        number = int(text) if text.isascii() else minimum - 1
    except ValueError:
        raise ValueError(f"must be a whole number ({unit})") from None
    if not minimum <= number <= maximum:
        raise ValueError(f"must be from {minimum:,} to {maximum:,} ({unit})")
    return number


def flag(text: str) -> bool:
    """True for `1`, False for `0`. Raises ValueError for any other text."""
    if text not in ("0", "1"):
        raise ValueError("must be 1 or 0")
    return text == "1"


def any_of(words: Sequence[str]) -> str:
    """Words joined into one phrase: `a, b or c`."""
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def choice(kind: type[E], text: str) -> E:
    """The member of the enum `kind` whose value is the text. Raises ValueError where there is none."""
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"must be {any_of([member.value for member in kind])}") from None


def path(text: str, directory: Path) -> Path:
    """The path in a text. A relative one starts at `directory`; `~` is the user's home directory."""
    if "\0" in text:
        raise ValueError("must be a path")
    return directory / Path(text).expanduser()


def postgres(text: str) -> Postgres:
    """The parts of a URL `postgres://user:password@host:5432/name?sslmode=...`. The directory of a socket is given as
    `?host=/run/postgresql`. Raises ValueError.
    """
    example = "must be postgres://user:password@host:5432/name (unset it for SQLite in the home)"
    url = _split(text, ("postgres", "postgresql"), example)
    name = unquote(url.path.removeprefix("/"))
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    host = query.pop("host", unquote(url.hostname or ""))
    if not name or "/" in name:
        raise ValueError(f"{example}: the name of the database is missing or not a name")
    if not host:
        raise ValueError(f"{example}: the host is missing")
    return Postgres(
        host=host,
        port=str(url.port or 5432),
        user=unquote(url.username or ""),
        name=name,
        password=unquote(url.password or ""),
        options=tuple(sorted(query.items())),
    )


def redis(text: str) -> str:
    """The text unchanged, if it is a URL with `redis://`, `rediss://` or `redis+socket://`. Raises ValueError
    otherwise.
    """
    example = "must be redis://host:6379/0, rediss://host:6379/0 or redis+socket:///path/to/socket (unset: embedded)"
    url = _split(text, ("redis", "rediss", "redis+socket"), example)
    if url.scheme == "redis+socket":
        if url.netloc or len(url.path) < 2:
            raise ValueError(example)
    elif not url.hostname or not re.fullmatch(r"(?:/\d*)?", url.path):
        raise ValueError(example)
    return text


def public_url(text: str) -> str:
    """The text, if it is `http://host[:port]` or `https://host[:port]`; a slash at its end is removed. Raises
    ValueError for anything else, such as a path.
    """
    example = "must be http://host[:port] or https://host[:port], without a path"
    url = _split(text, ("http", "https"), example)
    if not url.hostname or url.path not in ("", "/") or url.query or url.fragment or url.username is not None:
        raise ValueError(example)
    return text.rstrip("/")


def mail(text: str) -> Mail:
    """The parts of a URL such as `smtp://`, `smtp+starttls://` or
    `smtps://user:password@host:port?from=parley@example.org`. Raises ValueError.
    """
    example = "must be smtps://user:password@host:465?from=parley@example.org (or smtp:, smtp+starttls:)"
    kinds = {
        "smtp": (MailSecurity.NONE, 25),
        "smtp+starttls": (MailSecurity.STARTTLS, 587),
        "smtps": (MailSecurity.TLS, 465),
    }
    url = _split(text, tuple(kinds), example)
    query = dict(parse_qsl(url.query))
    sender = query.pop("from", "")
    if not url.hostname or url.path not in ("", "/") or query or not re.fullmatch(r"[^@\s<>]+@[^@\s<>]+", sender):
        raise ValueError(example)
    security, port = kinds[url.scheme]
    return Mail(
        host=url.hostname,
        port=url.port or port,
        security=security,
        sender=sender,
        user=unquote(url.username or ""),
        password=unquote(url.password or ""),
    )


def words(text: str) -> tuple[str, ...]:
    """The words of a list that is separated by commas. Blanks around a word are removed, and empty words left out."""
    return tuple(word for word in (each.strip() for each in text.split(",")) if word)


def networks(text: str) -> tuple[Network, ...]:
    """The IP addresses and networks in a list such as `10.0.0.0/8, 192.0.2.7`. Raises ValueError."""
    try:
        return tuple(ip_network(word) for word in words(text))
    except ValueError:
        raise ValueError("must list IP addresses or networks, for example 10.0.0.0/8, 192.0.2.7") from None


def webhook_allow(text: str) -> WebhookAllow:
    """The IP addresses, networks and host names in a list separated by commas. Raises ValueError."""
    found: list[Network] = []
    hosts: list[str] = []
    for word in words(text):
        try:
            found.append(ip_network(word))
        except ValueError:
            # A word of digits, dots and slashes is a mistyped network, never a host's name.
            if not _HOST_NAME.fullmatch(word) or not re.search(r"[A-Za-z]", word):
                raise ValueError("must list IP addresses, networks or host names, separated by commas") from None
            hosts.append(word.lower())
    return WebhookAllow(tuple(found), tuple(hosts))


def trust_domains(text: str) -> tuple[str, ...]:
    """The SPIFFE trust domains in a list that is separated by commas, without `spiffe://`. Raises ValueError."""
    found = words(text)
    if not all(_TRUST_DOMAIN.fullmatch(word) for word in found):
        raise ValueError("must list SPIFFE trust domains, for example prod.example.org, without spiffe://")
    return found


def secret_key(text: str) -> str:
    """The text unchanged, if it is long enough for Django's secret key not to be guessed. Raises ValueError
    otherwise.
    """
    if len(text) < _SECRET_KEY_CHARS:
        raise ValueError(f"must be at least {_SECRET_KEY_CHARS} random characters")
    return text


def encryption_keys(text: str) -> tuple[bytes, ...]:
    """The keys in a list that is separated by commas, each 32 bytes in base64 (URL-safe alphabet). The first key
    encrypts; all decrypt. Raises ValueError.
    """
    example = "must list 32-byte keys in URL-safe base64, separated by commas"
    keys: list[bytes] = []
    for word in words(text):
        try:
            key = urlsafe_b64decode(word.encode("ascii") + b"=" * (-len(word) % 4))
        except (binascii.Error, UnicodeEncodeError):
            raise ValueError(example) from None
        if len(key) != ENCRYPTION_KEY_BYTES:
            raise ValueError(example)
        keys.append(key)
    if not keys:
        raise ValueError(example)
    if len(set(keys)) != len(keys):
        raise ValueError("must not list a key twice")
    return tuple(keys)


def _is_ipv6(text: str) -> bool:
    try:
        return ip_address(text).version == 6
    except ValueError:
        return False


def _split(text: str, schemes: tuple[str, ...], example: str) -> SplitResult:
    try:
        url = urlsplit(text)
        _ = url.port  # raises when it is not a port
    except ValueError:
        raise ValueError(example) from None
    if url.scheme not in schemes:
        raise ValueError(example)
    return url
