"""A Celery worker that kills itself, as the kernel would, at the failpoint named by the file `DIE_AT`; once.

Started as `celery --app tests.support.mortal_worker:app worker`.
"""

import os
import signal
from pathlib import Path

from controlplane import failpoints
from controlplane.celery import app

__all__ = ["app"]


def _die_if_named(name: str) -> None:
    file = Path(os.environ["DIE_AT"])
    try:
        if file.read_text(encoding="utf-8") == name:
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
    except FileNotFoundError:
        return


failpoints.arm(_die_if_named)
