"""Figures that tests measure: `make nightly` shows what they print, docs/reliability.md has those of one run."""

import time
from collections.abc import Callable


def seconds(done: Callable[[], object]) -> float:
    """The seconds that a call of `done` takes."""
    started = time.monotonic()
    done()
    return time.monotonic() - started


def measured(**figures: float) -> None:
    """Print these figures on one line."""
    print(", ".join(f"{name} = {round(value, 3):g}" for name, value in figures.items()))  # noqa: T201 - its purpose
