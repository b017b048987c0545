"""Lets any process of Parley kill itself, as the kernel would, at the failpoint that the file `DIE_AT` names; once. It
leaves its id in the file `DIED`. On a process's PYTHONPATH, it runs before anything else does.
"""

import os
import signal
from pathlib import Path

from controlplane.database import failpoints


def _die_if_named(name: str) -> None:
    file = Path(os.environ["DIE_AT"])
    try:
        if file.read_text(encoding="utf-8") == name:
            file.unlink()
            Path(os.environ["DIED"]).write_text(str(os.getpid()), encoding="ascii")
            os.kill(os.getpid(), signal.SIGKILL)
    except FileNotFoundError:
        return


failpoints.arm(_die_if_named)
