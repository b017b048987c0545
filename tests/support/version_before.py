"""The code of the version before: that of the last release (reliability F26). As long as nothing is released, that of
the last commit that does not know the newest migration, so that each new one is tried by code that does not know it.
"""

import subprocess
from pathlib import Path

from tests.support.stack import ROOT

NO_HISTORY = "this checkout has no git history that goes back behind the newest migration (a shallow clone?)"

_MIGRATIONS = "controlplane/*/migrations/0*.py"


def version_before(folder: Path, *, migration: str = "") -> Path | None:
    """Put the files of the version before into this folder; their path, None where the history does not have it.
    `migration`: those of the last commit that does not know this one, whatever was released since.
    """
    before = commit_without(ROOT, migration) if migration else commit_before(ROOT)
    if not before:
        return None
    archive, code = folder / "version-before.tar", folder / "version-before"
    code.mkdir()
    subprocess.run(["git", "archive", "--output", archive, before], cwd=ROOT, check=True, timeout=60)
    subprocess.run(["tar", "-xf", archive, "-C", code], check=True, timeout=60)
    return code


def migrations_since(before: Path) -> set[str]:
    """The migrations that this checkout has and the code at `before` has not."""
    here, there = ({str(file.relative_to(code)) for file in code.glob(_MIGRATIONS)} for code in (ROOT, before))
    return here - there


def commit_before(checkout: Path) -> str:
    """The commit of the version before; empty where the history does not have it."""
    # Of a commit that is itself a release, the version before is the release before that.
    tag = _git(checkout, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*.[0-9]*.[0-9]*", "HEAD~1")
    return _git(checkout, "rev-parse", f"{tag}^{{}}") if tag else commit_without(checkout, _MIGRATIONS)


def commit_without(checkout: Path, migration: str) -> str:
    """The last commit that does not know the newest migration of this pattern; empty where the history has none."""
    newest = _git(checkout, "log", "--diff-filter=A", "-1", "--format=%H", "--", migration)
    return _git(checkout, "rev-parse", "--verify", "--quiet", f"{newest}~1") if newest else ""


def _git(checkout: Path, *arguments: str) -> str:
    """The output of a git command; empty where there is no git, this is no repository, or it does not know."""
    command = ["git", *arguments]
    try:
        asked = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
