"""How much memory one ADS process may use: what it was told, else its share of what its cgroup or machine has.

`least_limit` and `cgroup_files` are pure; `allowed_bytes` reads. Once, when the process starts.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from xdscore.limits import Limits

_MIB = 1024 * 1024
_MEMBERSHIP = Path("/proc/self/cgroup")
_MOUNT = PurePosixPath("/sys/fs/cgroup")


def cgroup_files(membership: str) -> Iterator[PurePosixPath]:
    """The files that may limit the memory of a process whose /proc/self/cgroup has the content `membership`: those of
    its cgroup and of all above it.

    Version 2 has one line `0::/path`, version 1 a line `4:memory:/path` among others. In a container the path may be
    that of the host, of which only the root is there to be read.
    """
    for line in membership.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if (number, controllers) == ("0", ""):
            mount, name = _MOUNT, "memory.max"
        elif "memory" in controllers.split(","):
            mount, name = _MOUNT / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = PurePosixPath(path.lstrip("/"))
        yield from (mount / each / name for each in (own, *own.parents))


def least_limit(texts: Iterable[str], machine_bytes: int) -> int:
    """The least of some cgroup limits and the machine's memory, in bytes; 0 when nothing is known. `texts`: the
    contents of the files of the limits.

    Version 2 says `max` for no limit, version 1 a number that no machine has.
    """
    limits = [int(text) for text in map(str.strip, texts) if text.isascii() and text.isdigit()]
    return min((each for each in (*limits, machine_bytes) if each > 0), default=0)


def allowed_bytes(limits: Limits, workers: int) -> int:
    """The bytes of memory that each of `workers` processes may use; 0 when unknown."""
    if limits.memory_mib:
        return limits.memory_mib * _MIB
    files = map(Path, cgroup_files(_read(_MEMBERSHIP)))
    return least_limit(map(_read, files), _machine_bytes()) // workers


def _read(path: Path) -> str:
    """The text of a file; empty when it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
