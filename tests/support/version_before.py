"""The code of the version before: that of the last commit that does not know the newest migration (reliability F26).

The same rule finds it whatever is released when, and each new migration is tried by the code that does not know it.
"""

import subprocess
from pathlib import Path

from tests.support.stack import ROOT

NO_HISTORY = "this checkout has no git history that goes back behind the newest migration (a shallow clone?)"

_MIGRATIONS = "controlplane/*/migrations/0*.py"


def version_before(folder: Path, *, migration: str = _MIGRATIONS) -> Path | None:
    """Its files, put into this folder; None where the history does not have it. `migration`: the last one that does not
    know this migration.
    """
    newest = _git("log", "--diff-filter=A", "-1", "--format=%H", "--", migration)
    before = newest and _git("rev-parse", "--verify", "--quiet", f"{newest}~1")
    if not before:
        return None
    archive, code = folder / "version-before.tar", folder / "version-before"
    code.mkdir()
    subprocess.run(["git", "archive", "--output", archive, before], cwd=ROOT, check=True, timeout=60)
    subprocess.run(["tar", "-xf", archive, "-C", code], check=True, timeout=60)
    return code


def _git(*arguments: str) -> str:
    """What git says; nothing where there is no git, this is no repository, or it does not know."""
    try:
        asked = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
