"""Run one program on this machine, as the caller or, where the caller is root, as another user."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Ids:
    """A user and a group by their numbers; None stands for the caller's own."""

    uid: int | None
    gid: int | None


CALLER: Final = Ids(None, None)


def ended(
    command: Sequence[str], *, directory: Path, variables: Mapping[str, str], wait_s: float, ids: Ids = CALLER
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end; returns its result, with both outputs in `stdout`. Raises OSError or
    subprocess.TimeoutExpired.
    """
    return subprocess.run(  # noqa: S603  commands of our own Dockerfile
        command,
        cwd=directory,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=wait_s,
        check=False,
        user=ids.uid,
        group=ids.gid,
        extra_groups=None if ids == CALLER else [],
    )
