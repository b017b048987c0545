"""Where a log line comes from: role, process, version and, of ADS, the replica. Each line as JSON carries all of it.

The role is read off the command that was typed, so that it is known before anything of ours runs, and is the same
whoever starts the processes.
"""

import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import PurePath
from typing import Final

from xdscore.version import VERSION

WEB: Final = "web"
WORKER: Final = "worker"
BEAT: Final = "beat"
ADS: Final = "ads"
SERVING: Final = frozenset({WEB, WORKER, BEAT, ADS})
"""The roles that run until they are stopped. Every other one is a command, which prints its result."""

_WEB_APPLICATION: Final = "controlplane.asgi"
_replica = ""


def origin() -> dict[str, object]:
    """The log fields that name this process; `process` is its id for the operating system, `replica` the id by which
    the facts of an ADS process know it.
    """
    found: dict[str, object] = {"role": role(), "process": os.getpid(), "version": VERSION}
    return found | {"replica": _replica} if _replica else found


@cache
def role() -> str:
    """The role of this process."""
    return role_of(sys.argv)


def replica_set(identity: str) -> None:
    """Set the `replica` field of this ADS process's log lines from now on."""
    global _replica  # noqa: PLW0603  a fact of the whole process
    _replica = identity


def role_of(arguments: Sequence[str]) -> str:
    """The role of a process that was started with these arguments, its program first: one of `SERVING`, else the word
    of the command (`prepare`, `backup`).
    """
    if not arguments:
        return "python"
    program, *others = arguments
    file = PurePath(program)
    # What runs by `python -m` is named by its folder.
    word = file.parent.name if file.name == "__main__.py" else file.stem
    if any(each.startswith(_WEB_APPLICATION) for each in others):
        return WEB
    if word == "celery":
        return next((each for each in others if each in (WORKER, BEAT)), word)
    if word == "manage" and others and others[0].isidentifier():
        return others[0]
    return word or "python"
