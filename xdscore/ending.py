"""How a program of ours ends when whoever reads its output, or sits at its terminal, has had enough."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

INTERRUPTED: Final = 130  # 128 and the number of SIGINT, as shells have it


@contextmanager
def ended_quietly() -> Iterator[None]:
    """A block in which a program runs. Ctrl-C ends it with status 130, and a reader that went away (`| head`) with
    status 0 unless it has another: neither with a traceback.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        raise SystemExit(0) from None
    finally:
        unread_dropped()


def unread_dropped() -> None:
    """Write what waits to standard output and error, or drop it where nobody reads: Python would complain at its
    end.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
