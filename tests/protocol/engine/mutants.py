"""Pytest plugin of `make mutation`: what kills a mutant quickly goes first, and one that goes on for ever is ended.

Most mutants die of a scenario that takes milliseconds; only those that survive all scenarios meet the generated tests.
A test's limit counts processor time, not time, so that a busy machine kills no mutant.
"""

import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

# Several times what the slowest test of each sort needs.
_SCENARIO_SECONDS = 1.5
_GENERATED_SECONDS = 20.0
# What mutmut reads as "took too long".
_TOO_LONG = 36


def _generated(item: pytest.Item) -> bool:
    """Whether the test's examples are generated; Hypothesis's plugin sets the mark for those that it makes."""
    return "hypothesis" in item.keywords


def _end(_signal: int, _frame: FrameType | None) -> None:
    """Leave at once: a test that is stuck may catch everything that is raised in it."""
    os._exit(_TOO_LONG)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Scenarios by name, then what is generated."""
    items.sort(key=lambda item: (_generated(item), item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count the test's processor time."""
    signal.signal(signal.SIGPROF, _end)
    signal.setitimer(signal.ITIMER_PROF, _GENERATED_SECONDS if _generated(item) else _SCENARIO_SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
