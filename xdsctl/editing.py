"""A text in the editor of whoever sits at the terminal."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from xdsctl.exits import CommandError, Exit, UsageError

_EDITOR: Final = "vi"


def draft_written(text: str) -> Path:
    """A new temporary file with this text, which only its owner may read."""
    with tempfile.NamedTemporaryFile("w", prefix="xdsctl-", suffix=".yaml", delete=False, encoding="utf-8") as file:
        file.write(text)
    return Path(file.name)


def draft_edited(file: Path) -> None:
    """Open the file in the user's editor and wait until the editor ends. Raises CommandError when there is no editor,
    or it failed.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _EDITOR
    try:
        ended = subprocess.run([*shlex.split(editor), str(file)], check=False)  # noqa: S603 - the user's own editor
    except OSError as error:
        file.unlink()
        raise UsageError(f"The editor '{editor}' cannot be started: {error.strerror}. Set EDITOR.") from error
    if ended.returncode:
        raise CommandError(Exit.NO, f"The editor ended with status {ended.returncode}; nothing was sent.")
