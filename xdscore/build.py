"""Which build this is: Parley's version with the commit it was made from, where that is known. Never required.

The commit is in `commit.txt`: git writes it there when it makes an archive (a release's image context and the
wheels are made from one), and an image that is built from a checkout is told by the build argument COMMIT. A process
that runs in a checkout reads the commit from the checkout's own `.git`, without running git.
"""

import platform
import re
from pathlib import Path
from typing import Final

from xdscore.version import VERSION

HEADER: Final = "Parley-Version"
"""The header by which the server tells BUILD_VERSION."""

COMMIT_FILE: Final = "commit.txt"
"""Beside this module."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)  # SHA-1, or SHA-256
_SHOWN_CHARS: Final = 12  # enough to find it in a history of millions
_MAX_CHARS: Final = 10_000_000  # packed-refs of a repository with 100,000 tags


def build_info(role: str) -> bytes:
    """The metric `parley_build_info` as Prometheus text, for a process of this role: `web`, `ads`, `worker` or
    `beat`.
    """
    labels = {"commit": COMMIT, "python": platform.python_version(), "role": role, "version": VERSION}
    told = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return (
        "# HELP parley_build_info 1; its labels say which build of Parley this process runs.\n"
        "# TYPE parley_build_info gauge\n"
        f"parley_build_info{{{told}}} 1.0\n"
    ).encode()


def commit_in(file: Path, checkout: Path) -> str:
    """The commit that the text of `file` names; else the one that is checked out in the folder `checkout`; empty when
    neither is known.
    """
    for found in (_read(file), _checked_out(checkout)):
        if _COMMIT.fullmatch(found):
            return found
    return ""


def _checked_out(folder: Path) -> str:
    git = folder / ".git"
    if git.is_file():  # one of several work trees: it says where its own folder is
        git = folder / _read(git).removeprefix("gitdir: ")
    head = _read(git / "HEAD")
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    shared = git / (_read(git / "commondir") or ".")
    packed = (line.partition(" ") for line in _read(shared / "packed-refs").splitlines())
    return _read(shared / name) or next((found for found, _, ref in packed if ref == name), "")


def _read(file: Path) -> str:
    """The text of a file without white space around it; empty when the file cannot be read."""
    try:
        with file.open(encoding="ascii", errors="replace") as opened:
            return opened.read(_MAX_CHARS).strip()
    except OSError:
        return ""


# Read when the process starts: a checkout that is brought up to date under it runs what it ran.
COMMIT: Final = commit_in(Path(__file__).with_name(COMMIT_FILE), Path(__file__).parents[1])
"""The whole commit in hex; empty where nobody knows."""

BUILD_VERSION: Final = f"{VERSION}+{COMMIT[:_SHOWN_CHARS]}" if COMMIT else VERSION
"""The version and the first characters of the commit, as Semantic Versioning writes them: `0.2.0+8d8d2a0c11e4`."""
