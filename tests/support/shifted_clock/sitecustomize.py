"""Shifts the clock of a Python process (reliability F16): on its PYTHONPATH, it runs before anything else does.

`CLOCK_SHIFT` names a file with the seconds by which the time of day is off; it is looked at again at each reading, so
that the clock can also be stepped. Only the time of day moves, as with a wrong clock: monotonic time goes on. What does
not read the time through Python, gRPC's core and the kernel, keeps the right time; it has timeouts, and they are
monotonic on a machine whose clock is wrong, too.
"""

import datetime as dt
import os
import time
from pathlib import Path
from typing import Self

_FILE = Path(os.environ["CLOCK_SHIFT"])
_time, _time_ns, _gmtime, _localtime = time.time, time.time_ns, time.gmtime, time.localtime
_Right = dt.datetime


def _shift_s() -> int:
    return int(_FILE.read_text(encoding="ascii"))


class _AnyDatetime(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Right)


class _Datetime(_Right, metaclass=_AnyDatetime):
    """The class that others import as `datetime.datetime`, with the shifted time."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Self:
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> Self:
        return cls.now(dt.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Self:
        return cls.now()


time.time = lambda: _time() + _shift_s()
time.time_ns = lambda: _time_ns() + _shift_s() * 1_000_000_000
time.gmtime = lambda seconds=None: _gmtime(time.time() if seconds is None else seconds)
time.localtime = lambda seconds=None: _localtime(time.time() if seconds is None else seconds)
dt.datetime = _Datetime  # type: ignore[misc]
