"""Waiting for something that must become true."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(
    question: Callable[[], T], want: Callable[[T], bool] = bool, *, within_s: float, every_s: float = 0.05
) -> T:
    """Ask until an answer is the wanted one, and return it; fails with the last one when none comes in time. An OSError
    is asked again.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            answer: object = question()
            if want(answer):  # type: ignore[arg-type]
                return answer  # type: ignore[return-value]
        except OSError as error:
            answer = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s; the last answer was {answer!r}")
        time.sleep(every_s)
