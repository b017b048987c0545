"""A machine without a browser: the suite passes, and says what it did not try."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly
def test_suite__no_chromium__passes_and_says_how_many_were_skipped_and_how_to_run_them() -> None:
    elsewhere = {**os.environ, "PATH": "/nonexistent", "CHROMIUM": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/web/test_browser.py"]

    ended = subprocess.run(command, cwd=ROOT, env=elsewhere, capture_output=True, text=True, check=False)

    *lines, closing = ended.stdout.splitlines()
    assert ended.returncode == 0, ended.stdout
    count = closing.split()[0]
    assert closing.startswith(f"{count} skipped")  # and those of make nightly are deselected
    assert (
        f"{count} tests were skipped: no Chromium on this machine: the pages were not tried in a browser"
        " (apt-get install chromium, or CHROMIUM=path)"
    ) in lines
