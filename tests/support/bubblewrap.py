"""Bubblewrap, which keeps the Envoy of deep validation apart; tests of it are skipped where it is not installed."""

import shutil
from typing import Final

import pytest

MISSING: Final = "bubblewrap is not installed (apt-get install bubblewrap), so Envoy was asked nothing"

needed = pytest.mark.skipif(shutil.which("bwrap") is None, reason=MISSING)
