"""A file that a backup cannot be written to, or read from, is said in one sentence. What backups hold: tests/faults."""

from pathlib import Path

import pytest

from controlplane.config.loading import load
from controlplane.ops.backups import BackupError, backup_restore, backup_write

# Longer than any file system takes: like a directory that is closed to this user, it cannot even be looked for.
UNREACHABLE = "x" * 300


def test_backup__to_where_nobody_can_look__is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=rf"{UNREACHABLE} cannot be written: file name too long\."):
        backup_write(config=load({}, directory=tmp_path), file=tmp_path / UNREACHABLE)


def test_restore__from_where_nobody_can_look__is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=rf"{UNREACHABLE} cannot be read: file name too long\."):
        backup_restore(config=load({}, directory=tmp_path), file=tmp_path / UNREACHABLE, say=print)
