"""One supervised process: what is left when its guard is killed, and what happens next."""

import asyncio
import io
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from controlplane.ops.supervisor.child import Child
from controlplane.ops.supervisor.output import LogFile, Screen
from controlplane.ops.supervisor.programs import Program

# Ignores SIGTERM, has a child that does too, says both ids, and keeps its output open.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    print("ids", os.getpid(), child, flush=True)
time.sleep(600)
"""
_LONGEST_S = 30


async def never_ready() -> bool:
    return False


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "stubborn.log"


@pytest.fixture
def child(tmp_path: Path, log: Path) -> Child:
    program = Program("stubborn", (sys.executable, "-c", STUBBORN), never_ready)
    screen = Screen(io.StringIO(), ("stubborn",), {})
    return Child(program, environment=os.environ, lock=tmp_path / "lock", screen=screen, file=LogFile(log))


async def test_guard_killed__its_program_and_their_children_end_and_the_program_starts_again(
    child: Child, log: Path
) -> None:
    running = asyncio.create_task(child.run())
    try:
        (first,) = await started(log, 1)

        os.kill(psutil.Process(first[0]).ppid(), signal.SIGKILL)

        second = (await started(log, 2))[1]
        assert all(map(gone, first))
        assert not any(map(gone, second))
    finally:
        child.kill()
        await asyncio.wait_for(running, _LONGEST_S)
    assert all(map(gone, second))


async def started(log: Path, times: int) -> list[list[int]]:
    """The ids that the program said at each of its starts, once there were so many."""
    async with asyncio.timeout(_LONGEST_S):
        while len(ids := said_ids(log)) < times:  # noqa: ASYNC110 - nothing tells a test
            await asyncio.sleep(0.02)
    return ids


def said_ids(log: Path) -> list[list[int]]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [[int(word) for word in line.split()[1:]] for line in lines if line.startswith("ids ")]


def gone(pid: int) -> bool:
    """Whether a process ended; one that only waits to be reaped has."""
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    return True
