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
HELP: Final = "help"
SERVING: Final = frozenset({WEB, WORKER, BEAT, ADS})
"""The roles that run until they are stopped. Every other one is a command, which prints its result."""

_WEB_APPLICATION: Final = "controlplane.asgi"
_ASKS_FOR_HELP: Final = frozenset({"-h", "--help"})
_replica = ""


def origin() -> dict[str, object]:
    """The log fields that name this process. `process`: its id in the operating system; `replica`: its id among the ADS
    processes, for ADS only.
    """
    found: dict[str, object] = {"role": role(), "process": os.getpid(), "version": VERSION}
    return found | {"replica": _replica} if _replica else found


@cache
def role() -> str:
    """The role of processes that this one has, such as `web`, or the command that it runs."""
    return role_of(sys.argv)


def replica_set(identity: str) -> None:
    """Write `identity` as the field `replica` of this process's log lines from now on. It is the id of an ADS
    process.
    """
    global _replica  # noqa: PLW0603  a fact of the whole process
    _replica = identity


def role_of(arguments: Sequence[str]) -> str:
    """The role of a process that was started with these arguments, of which the first is its program: one of `SERVING`,
    else the word of the command, such as `backup`.
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
        # It serves nothing then, and prints what people read.
        return HELP if _ASKS_FOR_HELP & set(others) else others[0]
    return word or "python"
