"""Weighs the processes of a running Parley while a soak goes on."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import psutil

from tests.soak.report import Life
from tests.support.stack import Parley

_EVERY_S = 5.0


class Scales:
    """Samples the resident memory of every process, with its children, on a thread of its own."""

    def __init__(self, parley: Parley) -> None:
        self._parley = parley
        self._samples: dict[tuple[str, int], list[tuple[float, float]]] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def stop(self) -> Sequence[Life]:
        """The lives of all processes that were seen, by name and then by age."""
        self._done.set()
        self._thread.join()
        return [Life(name, pid, tuple(samples)) for (name, pid), samples in sorted(self._samples.items(), key=_order)]

    def _run(self) -> None:
        began = time.monotonic()
        while not self._done.is_set():
            for name, process in list(self._parley.processes.items()):
                with suppress(psutil.Error):
                    here = psutil.Process(process.pid)
                    weight = sum(each.memory_info().rss for each in (here, *here.children(recursive=True)))
                    self._samples.setdefault((name, process.pid), []).append((time.monotonic() - began, float(weight)))
            self._done.wait(_EVERY_S)


def _order(item: tuple[tuple[str, int], list[tuple[float, float]]]) -> tuple[str, float]:
    (name, _), samples = item
    return name, samples[0][0]
