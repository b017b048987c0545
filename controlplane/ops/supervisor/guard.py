"""A small process between the supervisor and each program.

`guard.py CONTROL LOCK GRACE -- COMMAND...`: CONTROL is one end of a socket pair whose other end only the supervisor
has. Bytes on it are orders; its end means that the supervisor is gone, also by `kill -9`, and then the program and all
it started must not stay (decisions C33: a pipe and not PDEATHSIG, which only Linux has). LOCK is held, shared, until
everything is gone. The program runs in a process group of its own, so that its children can be ended with it.

Runs as a script, isolated and without site-packages: it starts in a few milliseconds and must not break with the rest.
"""

import fcntl
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Final

ORDER_TERMINATE: Final = b"t"  # ask the program to end
ORDER_KILL: Final = b"k"  # end the program and all it started, now
EXIT_COMMAND_MISSING: Final = 127  # as a shell says it

_POLL_S: Final = 1.0  # how late a lost wake-up may be noticed


def main(arguments: list[str]) -> int:
    """Run the command until it ends; its exit status, 128 + signal when a signal ended it."""
    control, lock, grace_s = int(arguments[1]), arguments[2], float(arguments[3])
    command = arguments[arguments.index("--") + 1 :]
    os.set_inheritable(control, False)
    # Held until this process ends; not inherited by the program.
    fcntl.flock(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_SH)
    wake = _wake_on_signals()
    program, go = _start(command)
    try:
        with suppress(BrokenPipeError):  # a supervisor that is gone already; `_watch` notices
            os.write(control, b"%d\n" % program)
        with suppress(BrokenPipeError):  # a program that was killed before it became one
            os.write(go, b"g")
        os.close(go)
        status = _watch(program, control, wake, grace_s)
    finally:
        # What the program leaves behind when it ends by itself, for example pool processes of a killed worker.
        _signal_group(program, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _start(command: list[str]) -> tuple[int, int]:
    """Fork a process for the program; its id, and a descriptor that starts the program by a byte: not before the
    supervisor knows the id, or nobody could end the program of a guard that was killed at that moment.
    """
    told, go = os.pipe()
    program = os.fork()
    if program:
        os.close(told)
        # Both sides do it: whoever comes first, the group exists before anybody is signalled. An error says that the
        # program did so itself and runs its command already, or has ended.
        with suppress(PermissionError, ProcessLookupError):
            os.setpgid(program, program)
        return program, go
    os.close(go)
    os.setpgid(0, 0)
    if not os.read(told, 1):
        os._exit(EXIT_COMMAND_MISSING)
    os.close(told)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    try:
        os.execvp(command[0], command)  # noqa: S606  no shell is wanted
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(EXIT_COMMAND_MISSING)


def _watch(program: int, control: int, wake: int, grace_s: float) -> int:
    """Carry out the supervisor's orders until the program has ended; its wait status."""
    kill_at = float("inf")
    while True:
        ended, status = os.waitpid(program, os.WNOHANG)
        if ended:
            return status
        now = time.monotonic()
        if now >= kill_at:
            _signal_group(program, signal.SIGKILL)
            kill_at = float("inf")
        readable, _, _ = select.select(
            [wake] + ([control] if control >= 0 else []), [], [], min(_POLL_S, max(0.0, kill_at - now))
        )
        if wake in readable and signal.SIGTERM in os.read(wake, 64):
            os.kill(program, signal.SIGTERM)
        if control in readable:
            order = _order(control)
            if order == ORDER_KILL:
                _signal_group(program, signal.SIGKILL)
            else:
                os.kill(program, signal.SIGTERM)
            if not order:  # the supervisor is gone: nobody else will say "now"
                control = -1
                kill_at = time.monotonic() + grace_s


def _order(control: int) -> bytes:
    """Read one order of the supervisor; empty when the supervisor is gone."""
    try:
        return os.read(control, 1)
    except ConnectionResetError:  # it went before it had read what this process told it
        return b""


def _wake_on_signals() -> int:
    """A descriptor on which the number of each signal appears; SIGTERM is passed on, the terminal's are ignored."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return read_end


def _signal_group(program: int, number: int) -> None:
    # Nobody is left; macOS says "permission" for a group of zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
