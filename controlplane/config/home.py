"""The home: the directory with everything the embedded default keeps (interfaces.md section 2, `PARLEY_HOME`).

Reading never writes. Whoever serves (the supervisor, `asgi`, `celery`, ADS) calls `home_create` first; checks, tests of
single modules and the type checker load the settings and leave no trace.
"""

import os
import secrets
import stat
from base64 import urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from controlplane.config import values
from controlplane.config.loading import Config

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600


class HomeError(Exception):
    """The home cannot be used; one sentence with its path."""


@dataclass(frozen=True, slots=True)
class Home:
    """The paths of the files and directories in the home. Nothing here touches the disk."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "db.sqlite3"

    @property
    def secret_key(self) -> Path:
        return self.path / "secret.key"

    @property
    def encryption_keys(self) -> Path:
        """The file with the encryption keys: one a line, newest first, in the form of PARLEY_ENCRYPTION_KEYS."""
        return self.path / "encryption.keys"

    @property
    def admin_password(self) -> Path:
        return self.path / "admin.password"

    @property
    def admin_token(self) -> Path:
        return self.path / "admin.token"

    @property
    def client_token(self) -> Path:
        """The file with a token of data planes, where PARLEY_ADS_AUTH is `token`."""
        return self.path / "client.token"

    @property
    def run(self) -> Path:
        """The directory of sockets, locks and schedules: worth nothing once no process of this home runs."""
        return self.path / "run"

    @property
    def cache(self) -> Path:
        """The directory of the last good snapshots of ADS (law 4)."""
        return self.path / "cache"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def valkey_socket(self) -> Path:
        """The path of the embedded Valkey's socket, or of a link to it where this path is too long for a socket's
        address.
        """
        return self.run / "valkey.sock"


def home_create(config: Config) -> Home:
    """Create the home, its directories and the keys that no variable gives. What exists stays; a race has one winner.

    Raises HomeError.
    """
    home = Home(config.home)
    try:
        for directory in (home.path, home.run, home.cache, home.logs):
            directory.mkdir(mode=DIRECTORY_MODE, parents=directory == home.path, exist_ok=True)
        _close_to_others(home.path)
        if not config.secret_key:
            private_create(home.secret_key, secrets.token_urlsafe(64))
        if not config.encryption_keys:
            key = urlsafe_b64encode(secrets.token_bytes(values.ENCRYPTION_KEY_BYTES)).decode()
            private_create(home.encryption_keys, key)
    except OSError as error:
        raise HomeError(f"PARLEY_HOME {config.home} cannot be used: {_reason(error)}.") from error
    return home


def secret_key(config: Config) -> str:
    """Django's secret key: the variable, else the home's file, else one of this process that nothing outlives."""
    if config.secret_key:
        return config.secret_key
    return _read(Home(config.home).secret_key) or _passing_key()


def encryption_keys(config: Config) -> tuple[bytes, ...]:
    """The key-encryption keys, newest first: those of the variable, else those in the home's file.

    Never invented: what was sealed under a key that is gone could not be opened. Raises HomeError.
    """
    if config.encryption_keys:
        return config.encryption_keys
    file = Home(config.home).encryption_keys
    try:
        return values.encryption_keys(_read(file).replace("\n", ","))
    except ValueError as error:
        raise HomeError(f"{file} {error}; or set PARLEY_ENCRYPTION_KEYS.") from error


def broker_url(config: Config) -> str:
    """The URL by which Celery reaches the broker: REDIS_URL, else the embedded Valkey's socket."""
    if config.redis_url:
        return config.redis_url
    link = Home(config.home).valkey_socket
    target = link
    with suppress(OSError):
        target = link.parent / link.readlink()
    return f"redis+socket://{quote(str(target))}"


def redis_client_url(url: str) -> str:
    """The URL in the form of redis-py, whose scheme for sockets is `unix` and whose parameter is `db`."""
    if not url.startswith("redis+socket:"):
        return url
    parts = urlsplit(url)
    query = parts.query.replace("virtual_host=", "db=")
    return f"unix://{parts.path}" + (f"?{query}" if query else "")


def private_create(file: Path, text: str) -> bool:
    """Write a file that only its owner may read, whole or not at all; whether it was created now. Never replaces
    one.
    """
    draft = _draft(file, text)
    try:
        os.link(draft, file)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def private_replace(file: Path, text: str) -> None:
    """Write a file that only its owner may read, in one step; a reader sees the old text or the new one."""
    _draft(file, text).replace(file)


def _draft(file: Path, text: str) -> Path:
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    return draft


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise HomeError(f"{file} cannot be read: {_reason(error)}.") from error


def _close_to_others(path: Path) -> None:
    status = path.stat()
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
        path.chmod(DIRECTORY_MODE)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else "not UTF-8 text"


@cache
def _passing_key() -> str:
    return secrets.token_urlsafe(64)
