"""Two locks in the home's run directory. The kernel lets go of them when their holders die, so none can be stale.

`supervisor.lock` is held by the one supervisor of a home. `children.lock` is shared by the guards of its processes: a
new supervisor waits until the last one is gone before it judges ports and sockets.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from controlplane.config.home import FILE_MODE, Home

# A guard ends its process within 3 s after the supervisor is gone; twice that, and something is wrong.
CHILDREN_WAIT_S: Final = 6.0
_POLL_S: Final = 0.05


class Held(Exception):
    """Another supervisor runs in this home; the sentence names both."""


def supervisor_lock(home: Home) -> int:
    """Lock this home for its only supervisor; the descriptor that holds the lock. Raises Held."""
    descriptor = os.open(_supervisor(home), os.O_RDWR | os.O_CREAT, FILE_MODE)
    _claim(descriptor, home)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def supervisor_absent(home: Home) -> None:
    """Raise Held when this home has a supervisor. Creates nothing."""
    try:
        descriptor = os.open(_supervisor(home), os.O_RDWR)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        _claim(descriptor, home)
    finally:
        os.close(descriptor)


def children_gone(home: Home, wait_s: float = CHILDREN_WAIT_S) -> bool:
    """Wait until no process of an earlier supervisor is left; whether that came true in time. Creates nothing."""
    try:
        descriptor = os.open(children_lock(home), os.O_RDWR)
    except (FileNotFoundError, NotADirectoryError):
        return True
    deadline = time.monotonic() + wait_s
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_POLL_S)
            else:
                return True
    finally:
        os.close(descriptor)


def children_lock(home: Home) -> Path:
    """The file whose lock is shared by the guards of all child processes."""
    return home.run / "children.lock"


def _supervisor(home: Home) -> Path:
    return home.run / "supervisor.lock"


def _claim(descriptor: int, home: Home) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        raise Held(f"Parley runs in PARLEY_HOME {home.path} already (process {holder}).") from None
