"""Bubblewrap, which keeps the Envoy of deep validation apart and lays an image's directories over those of the machine;
tests of it are skipped where it is not installed.
"""

import shutil
from typing import Final

import pytest

_MISSING: Final = "bubblewrap is not installed (apt-get install bubblewrap), so"
MISSING: Final = f"{_MISSING} Envoy was asked nothing"

_absent = shutil.which("bwrap") is None
needed = pytest.mark.skipif(_absent, reason=MISSING)
needed_by_images = pytest.mark.skipif(_absent, reason=f"{_MISSING} the Dockerfile's steps were not carried out")
