"""Steady load: a real client in a process of its own that calls at a rate, and what became of each call.

Targets are `xds:///name` for gRPC or `http://…` for what is behind an Envoy. Run as a script this module is that
client; gRPC for Node is tests/support/node_client/client.js, which takes the same argument and prints the same lines.
"""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grpc

from tests.support.backends import ECHO_METHOD
from tests.support.node_client import SCRIPT
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
CALL_S = 10.0
_HTTP_CALLS = 16


@dataclass(frozen=True, slots=True)
class Call:
    """One call that ended: `began_at` in seconds since the epoch, "OK" or what went wrong, the answer or the error."""

    target: str
    began_at: float
    seconds: float
    code: str
    text: str

    @property
    def ended_at(self) -> float:
        return self.began_at + self.seconds


class Steady:
    """The calls of steady load that ended so far. They go on until the block of `steady` ends, which waits for the last
    ones.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self.targets = targets
        self.calls: list[Call] = []

    def read(self, lines: Iterable[str]) -> None:
        """Read reports and keep every call in them, until there are no more."""
        for line in lines:
            self.calls.append(Call(**json.loads(line)))

    def flowing(self, *, within_s: float = CALL_S) -> None:
        """Wait until a call to each target has succeeded."""
        eventually(self._silent, lambda silent: not silent, within_s=within_s)

    def failed(self, since: float = 0.0) -> list[Call]:
        """The calls that failed, of those that began at this time or later."""
        return [call for call in self.calls if call.code != "OK" and call.began_at >= since]

    def of(self, target: str) -> list[Call]:
        """The calls to one target, in the order in which they ended."""
        return [call for call in self.calls if call.target == target]

    def _silent(self) -> set[str]:
        return set(self.targets) - {call.target for call in self.calls if call.code == "OK"}


@contextmanager
def steady(
    targets: Sequence[str], *, rate_per_s: float, bootstrap: Mapping[str, Any] | None = None, tp3: bool = True
) -> Iterator[Steady]:
    """Call each target this often with gRPC for Python, or HTTP, until the block ends. `tp3` switches on what C-core
    has of TP3 and A88.
    """
    variables = {"GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING": str(tp3).lower()}
    with _load([sys.executable, "-m", "tests.support.steady"], targets, rate_per_s, bootstrap, variables) as load:
        yield load


@contextmanager
def steady_node(
    modules: Path, targets: Sequence[str], *, rate_per_s: float, bootstrap: Mapping[str, Any]
) -> Iterator[Steady]:
    """Call each target this often with gRPC for Node, of these installed packages, until the block ends."""
    with _load(["node", str(SCRIPT)], targets, rate_per_s, bootstrap, {"NODE_PATH": str(modules)}) as load:
        yield load


@contextmanager
def _load(
    program: list[str],
    targets: Sequence[str],
    rate_per_s: float,
    bootstrap: Mapping[str, Any] | None,
    variables: Mapping[str, str],
) -> Iterator[Steady]:
    asked = json.dumps({"targets": targets, "rate_per_s": rate_per_s, "timeout_s": CALL_S})
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    environment = {**clean, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap), "GRPC_VERBOSITY": "NONE", **variables}
    load = Steady(targets)
    with subprocess.Popen(
        [*program, asked], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reading = threading.Thread(target=load.read, args=(process.stdout,))
        reading.start()
        try:
            yield load
            process.stdin.close()
            assert process.wait(CALL_S + 5.0) == 0, f"{program[0]} ended with {process.returncode}"
        finally:
            process.kill()
            reading.join()


def _call_steadily(targets: Iterable[str], rate_per_s: float, timeout_s: float) -> None:
    """Call until standard input ends, whether answers come or not; then wait for the last answers."""
    leave = threading.Event()
    threading.Thread(target=_set_at_end, args=(leave,), daemon=True).start()
    with ThreadPoolExecutor(_HTTP_CALLS) as threads:
        report = _Report()
        begin = [
            _grpc(each, timeout_s) if each.startswith("xds:") else _http(each, timeout_s, threads) for each in targets
        ]
        started, rounds = time.monotonic(), 0
        while not leave.wait(max(0.0, started + rounds / rate_per_s - time.monotonic())):
            for each in begin:
                each(report)
            rounds += 1
        report.wait()


def _set_at_end(leave: threading.Event) -> None:
    sys.stdin.read()
    leave.set()


class _Report:
    """Prints each call that ended, from whatever thread, and knows how many have not."""

    def __init__(self) -> None:
        self._outstanding = 0
        self._changed = threading.Condition()

    def began(self) -> float:
        with self._changed:
            self._outstanding += 1
        return time.time()

    def ended(self, target: str, began_at: float, code: str, text: str) -> None:
        line = json.dumps(asdict(Call(target, began_at, time.time() - began_at, code, text)))
        with self._changed:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
            self._outstanding -= 1
            self._changed.notify()

    def wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._outstanding == 0)


def _grpc(target: str, timeout_s: float) -> Callable[[_Report], None]:
    method = grpc.insecure_channel(target).unary_unary(ECHO_METHOD, None, None)

    def begin(report: _Report) -> None:
        began_at = report.began()

        def ended(future: Any) -> None:
            code, text = future.code().name, future.details()
            report.ended(target, began_at, code, future.result().decode() if code == "OK" else text)

        method.future(b"hello", timeout=timeout_s).add_done_callback(ended)

    return begin


def _http(url: str, timeout_s: float, threads: ThreadPoolExecutor) -> Callable[[_Report], None]:
    """A function that GETs a URL, on a connection of its own for each call: the listener must take it."""

    def call(report: _Report, began_at: float) -> None:
        try:
            with urllib.request.urlopen(url, timeout=timeout_s) as answer:  # noqa: S310 - loopback
                code, text = "OK", answer.read().decode()
        except urllib.error.HTTPError as error:
            code, text = str(error.code), error.read().decode()
        except OSError as error:
            code, text = type(error).__name__, str(error)
        report.ended(url, began_at, code, text)

    def begin(report: _Report) -> None:
        threads.submit(call, report, report.began())

    return begin


if __name__ == "__main__":
    _asked = json.loads(sys.argv[1])
    _call_steadily(_asked["targets"], _asked["rate_per_s"], _asked["timeout_s"])
