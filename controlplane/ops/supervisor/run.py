"""The order of starting and stopping. Called by `__main__`; never imports Django."""

import asyncio
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from controlplane.config.home import Home
from controlplane.config.loading import Config
from controlplane.ops.supervisor.child import Child
from controlplane.ops.supervisor.facts import demo_begins, facts, look_next
from controlplane.ops.supervisor.locks import children_lock
from controlplane.ops.supervisor.output import LogFile, Screen
from controlplane.ops.supervisor.prepared import prepared, prepared_note
from controlplane.ops.supervisor.programs import (
    DEMO,
    PREPARE,
    STOP_GRACE_S,
    STOP_ORDER,
    Program,
    broker,
    demo,
    preparation,
    programs,
)
from controlplane.ops.supervisor.valkey import socket_clear, socket_place, valkey_binary

EXIT_STOPPED: Final = 0
EXIT_NOT_READY: Final = 1
EXIT_CANNOT_START: Final = 2

# `make run` promises an answer within 90 s on a fresh machine, installing included; a process that is not ready after
# this long, or that ended this often before it ever was, will not be.
START_WAIT_S: Final = 60.0
START_FAILURES_MAX: Final = 3
_POLL_S: Final = 0.05
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Supervisor:
    """Starts, watches and stops the processes that run in one home directory."""

    config: Config
    home: Home
    environment: Mapping[str, str]
    worker_processes: int
    with_demo: bool
    screen: Screen
    _children: dict[str, Child] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        """Start all processes, print how to use Parley, and run until a signal comes. Returns the exit status."""
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self._signalled)
        status = EXIT_STOPPED
        if self.with_demo:
            self.screen.plain(demo_begins(self.home))
        try:
            problem = await self._start()
            if problem:
                self.screen.plain(f"\n{problem}")
                status = EXIT_NOT_READY
            else:
                if not self._stop.is_set():
                    self.screen.plain(facts(self.config, self.home))
                    if self.with_demo:
                        self.screen.plain(look_next(self.config, self.home))
                await self._stop.wait()
        finally:
            await self._stop_all()
        return status

    async def _start(self) -> str:
        """Start the broker, then all other processes at once, and wait until each is ready. Returns an empty text, or
        why they will not be ready.
        """
        if self.config.embedded_valkey:
            binary = valkey_binary()
            assert binary is not None  # noqa: S101  preflight looked
            self._launch(broker(binary, socket_place(self.home)))
        if problem := await self._prepare() or await self._all_ready():
            return problem
        if not self._stop.is_set():
            for program in programs(self.config, self.home, worker_processes=self.worker_processes):
                self._launch(program)
            if self.with_demo:
                self._launch(demo(self.home))
        return await self._all_ready()

    async def _prepare(self) -> str:
        """Prepare the home directory and the database, unless that was done. Returns an empty text, or why it
        failed.
        """
        if prepared(self.config, self.home):
            return ""
        child = self._child(preparation())
        self._children[PREPARE] = child
        status = await child.run_once()
        del self._children[PREPARE]
        if status or self._stop.is_set():
            return "" if self._stop.is_set() else self._why([PREPARE])
        prepared_note(self.config, self.home)
        return ""

    def _child(self, program: Program) -> Child:
        # What a demo shows would be lost among the lines of the others, which are in the files.
        shown = program.shown and (not self.with_demo or program.name == DEMO)
        return Child(
            replace(program, shown=shown),
            environment=self.environment,
            lock=children_lock(self.home),
            screen=self.screen,
            file=LogFile(self._file(program.name)),
        )

    def _launch(self, program: Program) -> None:
        child = self._child(program)
        self._children[program.name] = child
        self._tasks.append(asyncio.create_task(child.run(), name=program.name))

    async def _all_ready(self) -> str:
        deadline = time.monotonic() + START_WAIT_S
        while not self._stop.is_set():
            waiting = [name for name, child in self._children.items() if not child.ready.is_set()]
            if not waiting:
                break
            failed = [name for name in waiting if self._children[name].failures >= START_FAILURES_MAX]
            if failed or time.monotonic() > deadline:
                return self._why(failed or waiting)
            await asyncio.sleep(_POLL_S)
        return ""

    def _why(self, names: list[str]) -> str:
        files = ", ".join(str(self._file(name)) for name in names)
        what = "the preparation failed" if names == [PREPARE] else f"{' and '.join(names)} did not become ready"
        return f"Parley cannot start: {what}; why is in {files}."

    async def _stop_all(self) -> None:
        self.screen.plain("\nStopping; once more Ctrl-C kills what is left.")
        self._stop.clear()
        stopping = asyncio.create_task(self._stop_in_order())
        hurry = asyncio.create_task(self._stop.wait())
        await asyncio.wait((stopping, hurry), return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            for child in self._children.values():
                child.kill()
        await stopping
        hurry.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        socket_clear(self.home)
        self.screen.plain("Parley has stopped.")

    async def _stop_in_order(self) -> None:
        for name in STOP_ORDER:
            if name in self._children:
                await self._children[name].stop(STOP_GRACE_S)

    def _signalled(self) -> None:
        self._stop.set()
        if PREPARE in self._children:  # nobody waits for a signal yet
            self._children[PREPARE].terminate()

    def _file(self, name: str) -> Path:
        return self.home.logs / f"{name}.log"
