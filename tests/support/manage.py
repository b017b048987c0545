"""One command of `manage.py` in a process of its own, as an operator runs it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.keys import ENCRYPTION_KEYS
from tests.support.postgres import client_programs
from tests.support.stack import ROOT


def manage(
    home: Path, *arguments: str, database: str = "", keys: str = ENCRYPTION_KEYS
) -> "subprocess.CompletedProcess[str]":
    """Run manage.py in this home, with this DATABASE_URL and these keys, and with PostgreSQL's client programs on the
    path.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "DJANGO_"))}
    environment = {**clean, "PARLEY_HOME": str(home), "PATH": f"{client_programs()}:{clean['PATH']}"}
    if database:
        environment |= {"DATABASE_URL": database, "PARLEY_ENCRYPTION_KEYS": keys}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
