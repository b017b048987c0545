"""gRPC for Node (`@grpc/grpc-js-xds`), and a client of gRPC reflection, installed at first use exactly as
tests/support/node_client/package-lock.json says, into a folder of the virtual environment that is named after that
file's content.

Run as a script it installs and nothing else.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

SCRIPT: Final = Path(__file__).parent / "node_client" / "client.js"
REFLECT: Final = SCRIPT.with_name("reflect.js")
_PINNED: Final = [SCRIPT.with_name("package.json"), SCRIPT.with_name("package-lock.json")]
_CACHE: Final = Path(__file__).parents[2] / ".venv" / "node-client"
_INSTALL_S: Final = 100.0
MISSING: Final = (
    "gRPC for Node was not tried, for want of Node with npm or of the packages (apt-get install nodejs npm)"
)


@cache
def why_no_node() -> str:
    """The reason why gRPC for Node cannot be tried here, with MISSING at its beginning; empty when it can. Installs
    it.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        return f"{MISSING}: there is no node or no npm on this machine"
    try:
        node_modules()
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return f"{MISSING}: {error}"
    return ""


@cache
def node_modules() -> Path:
    """The folder of the installed Node packages. Raises RuntimeError in npm's words when they cannot be installed."""
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in _PINNED)).hexdigest()[:16]
    folder = _CACHE / digest
    folder.mkdir(parents=True, exist_ok=True)
    # Test processes start at the same time.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            _install(folder)
            (folder / "installed").touch()
    return folder / "node_modules"


def _install(folder: Path) -> None:
    for file in _PINNED:
        shutil.copy(file, folder)
    # No package needs to run a program of its own to be installed.
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"npm could not install gRPC for Node into {folder}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(why_no_node() or 0)
