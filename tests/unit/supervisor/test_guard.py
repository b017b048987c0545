"""The guard: nothing of its program outlives the supervisor, or the program itself."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from controlplane.config.home import Home
from controlplane.ops.supervisor import guard
from controlplane.ops.supervisor.locks import children_gone
from tests.support.waiting import eventually

GRACE_S = 0.5
# Ignores SIGTERM, has a child that does too, and says both ids.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    print(os.getpid(), child, flush=True)
time.sleep(60)
"""
# A child that stays when its parent leaves.
LEAVES_A_CHILD = """
import os, time
child = os.fork()
if child:
    print(os.getpid(), child, flush=True)
    os._exit(7)
time.sleep(60)
"""


@dataclass
class Guarded:
    """A guard and the supervisor's end of its socket pair."""

    process: "subprocess.Popen[str]"
    control: socket.socket

    def ids(self) -> list[int]:
        """What the program printed first."""
        assert self.process.stdout is not None
        return [int(word) for word in self.process.stdout.readline().split()]

    def rest(self) -> str:
        """What else it printed."""
        assert self.process.stdout is not None
        return str(self.process.stdout.read())


Start = Callable[..., Guarded]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Guarded] = []
    (tmp_path / "run").mkdir()

    def launch(*command: str) -> Guarded:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", guard.__file__),
                    *(str(theirs.fileno()), str(tmp_path / "run" / "children.lock"), str(GRACE_S), "--", *command),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        started.append(Guarded(process, ours))
        return started[-1]

    yield launch
    for each in started:
        each.control.close()
        each.process.wait(10)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    with suppress(OSError):
        os.kill(pid, 0)
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout
        return bool(state.strip()) and not state.strip().startswith("Z")
    return False


def test_guard__program_ends__says_its_status(start: Start) -> None:
    guarded = start("sh", "-c", "echo out; exit 3")

    assert guarded.process.wait(10) == 3
    assert guarded.rest() == "out\n"
    assert int(guarded.control.recv(32)) > 1


def test_guard__no_such_program__says_so_as_a_shell_would(start: Start) -> None:
    guarded = start("/no/such/program")

    assert guarded.process.wait(10) == 127
    assert "/no/such/program" in guarded.rest()


def test_guard__supervisor_gone__ends_program_and_children_after_the_grace_time(start: Start) -> None:
    guarded = start(sys.executable, "-c", STUBBORN)
    ids = guarded.ids()
    assert all(map(alive, ids))

    guarded.control.close()
    begun = time.monotonic()

    assert guarded.process.wait(10) == 128 + signal.SIGKILL
    assert time.monotonic() - begun >= GRACE_S * 0.8
    eventually(lambda: not any(map(alive, ids)), within_s=2)


def test_guard__order_to_terminate__reaches_the_program(start: Start) -> None:
    guarded = start("sh", "-c", "trap 'exit 5' TERM; echo $$; while :; do sleep 0.05; done")
    guarded.ids()

    guarded.control.send(guard.ORDER_TERMINATE)

    assert guarded.process.wait(10) == 5


def test_guard__sigterm_to_itself__is_passed_on(start: Start) -> None:
    guarded = start("sh", "-c", "trap 'exit 6' TERM; echo $$; while :; do sleep 0.05; done")
    guarded.ids()

    guarded.process.terminate()

    assert guarded.process.wait(10) == 6


def test_guard__order_to_kill__ends_the_group_now(start: Start) -> None:
    guarded = start(sys.executable, "-c", STUBBORN)
    ids = guarded.ids()

    guarded.control.send(guard.ORDER_KILL)

    assert guarded.process.wait(10) == 128 + signal.SIGKILL
    eventually(lambda: not any(map(alive, ids)), within_s=2)


def test_guard__program_leaves_a_child_behind__ends_it_too(start: Start) -> None:
    guarded = start(sys.executable, "-c", LEAVES_A_CHILD)
    _, child = guarded.ids()

    assert guarded.process.wait(10) == 7

    eventually(lambda: not alive(child), within_s=2)


def test_guard__while_it_runs__holds_the_children_lock(start: Start, tmp_path: Path) -> None:
    guarded = start("sh", "-c", "echo $$; exec sleep 60")
    guarded.ids()

    assert not children_gone(Home(tmp_path), wait_s=0.1)

    guarded.control.close()
    assert children_gone(Home(tmp_path), wait_s=5)
