"""Lets one process at a time do a piece of work. A claim only saves work: safety comes from the publish fence
(decisions D26).
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from typing import Final

from django.conf import settings
from django.db import connection

_TRY_AGAIN_S: Final = 0.02


@contextmanager
def claim(name: str, *, wait_s: float = 0.0) -> Iterator[bool]:
    """Claim the work called `name` for this process until the block ends. Yields True when no other process has claimed
    it, False where one still has it after `wait_s` seconds. The claim also ends when the process does.
    """
    claiming = _claim_in_postgresql if connection.vendor == "postgresql" else _claim_by_file
    until = time.monotonic() + wait_s
    with ExitStack() as stack:
        while not (claimed := stack.enter_context(claiming(name))) and time.monotonic() < until:
            stack.close()
            time.sleep(_TRY_AGAIN_S)
        yield claimed


@contextmanager
def _claim_in_postgresql(name: str) -> Iterator[bool]:
    key = int.from_bytes(blake2b(f"parley:{name}".encode(), digest_size=8).digest(), signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        claimed = bool(cursor.fetchone()[0])
    try:
        yield claimed
    finally:
        if claimed:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])


@contextmanager
def _claim_by_file(name: str) -> Iterator[bool]:
    folder = settings.PARLEY.home / "run"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)
