"""One process of `manage.py up`: started behind a guard, watched, started again after a pause, stopped in order."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from controlplane.ops.supervisor import guard
from controlplane.ops.supervisor.backoff import Backoff
from controlplane.ops.supervisor.output import LogFile, Screen, pump
from controlplane.ops.supervisor.programs import Program

# A guard gives its program this long after the supervisor is gone.
ORPHAN_GRACE_S: Final = 3.0
_PROBE_PAUSE_S: Final = 0.1
_KILL_WAIT_S: Final = 5.0  # a killed process is gone at once unless the kernel itself is stuck


class Child:
    """Keeps one program running until it is stopped."""

    def __init__(
        self, program: Program, *, environment: Mapping[str, str], lock: Path, screen: Screen, file: LogFile
    ) -> None:
        self.program = program
        self.ready = asyncio.Event()
        self.failures = 0  # ends before it was ready for the first time
        self._environment = {**environment, **program.environment}
        self._lock = lock
        self._screen = screen
        self._file = file
        self._backoff = Backoff()
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._control: socket.socket | None = None

    async def run(self) -> None:
        """Start the program again and again; return once it was stopped and has ended."""
        try:
            while not self._stopping.is_set():
                started = time.monotonic()
                status = await self._once()
                if self._stopping.is_set():
                    return
                wait_s = self._backoff.after(time.monotonic() - started)
                self._say(f"ended by itself ({_cause(status)}); it is started again in {wait_s:g} s")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), wait_s)
        finally:
            self._ended.set()

    async def run_once(self) -> int:
        """Run the program to its end; its exit status."""
        return await self._once()

    def terminate(self) -> None:
        """Ask the program to end; do not wait for it."""
        self._stopping.set()
        self._order(guard.ORDER_TERMINATE)

    async def stop(self, grace_s: float) -> None:
        """Ask the program to end, end it after the grace time, and return when it is gone."""
        self.terminate()
        try:
            await asyncio.wait_for(self._ended.wait(), grace_s)
        except TimeoutError:
            self._say(f"did not end within {grace_s:g} s and is killed")
            self._order(guard.ORDER_KILL)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _KILL_WAIT_S)

    def kill(self) -> None:
        """End the program now; do not wait for it."""
        self._stopping.set()
        self._order(guard.ORDER_KILL)

    async def _once(self) -> int:
        """One run of the program, from start to end; the guard's exit status."""
        for path in self.program.clears:
            path.unlink(missing_ok=True)
        ours, theirs = socket.socketpair()
        # A pipe of our own: with asyncio's, `wait` also waits for the end of all that writes into it, and a program
        # whose guard was killed would write on for ever.
        output, said = _pipe()
        with ours, theirs, output, said:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", guard.__file__),
                *(str(theirs.fileno()), str(self._lock), str(ORPHAN_GRACE_S), "--", *self.program.command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=asyncio.subprocess.STDOUT,
                env=self._environment,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C reaches the supervisor alone, which then stops all in order
            )
            theirs.close()
            said.close()
            self._control = ours
            if self._stopping.is_set():  # stop() came while there was nobody to give the order to
                self._order(guard.ORDER_TERMINATE)
            probing = asyncio.create_task(self._probe())
            pumping = asyncio.create_task(pump(await _reader(output), *self._takers()))
            try:
                group = await _program_of(ours)
                status = await process.wait()
                if status < 0:  # the guard itself was killed: what it guarded has nobody left
                    _end_group(group)
            finally:
                self._control = None
                probing.cancel()
                self._note_end()
            await pumping
        return status

    async def _probe(self) -> None:
        while not await self.program.ready():  # noqa: ASYNC110  another process cannot set our event
            await asyncio.sleep(_PROBE_PAUSE_S)
        self.ready.set()

    def _note_end(self) -> None:
        if not self.ready.is_set():
            self.failures += 1
        self.ready.clear()

    def _order(self, order: bytes) -> None:
        if self._control is not None:
            with suppress(OSError):  # it ended just now
                self._control.send(order)

    def _takers(self) -> tuple[Callable[[str], None], ...]:
        if self.program.shown:
            return (partial(self._screen.line, self.program.name), self._file.write)
        return (self._file.write,)

    def _say(self, text: str) -> None:
        self._screen.line(self.program.name, text)
        self._file.write(self._screen.stored(text, program=self.program.name))


def _pipe() -> tuple[BinaryIO, BinaryIO]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", buffering=0), os.fdopen(writing, "wb", buffering=0)


async def _reader(pipe: BinaryIO) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


async def _program_of(control: socket.socket) -> int:
    """The id of the guarded program's process group, as its guard reports it; 0 when the guard ended before."""
    control.setblocking(False)
    line = await asyncio.get_running_loop().sock_recv(control, 32)
    return int(line or b"0")


def _end_group(group: int) -> None:
    if group > 1:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _cause(status: int) -> str:
    number = -status if status < 0 else status - 128
    with suppress(ValueError):
        return f"signal {signal.Signals(number).name}"
    return f"exit status {status}"
