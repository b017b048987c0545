"""Texts that ask for far more than their size are refused before they cost anything (reliability threat 12)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bombs import BOMBS

ROOT = Path(__file__).parents[3]
MAX_CPU_S = 0.2
MAX_GROWTH_MIB = 50


@pytest.mark.parametrize("name", BOMBS)
def test_bomb__of_each_kind__is_refused_with_its_code_in_time_and_memory(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.bombs", name], cwd=ROOT, capture_output=True, text=True, check=True
    )

    measured = json.loads(done.stdout)
    assert BOMBS[name][2] in measured["codes"]
    assert measured["cpu_s"] < MAX_CPU_S
    assert measured["growth_mib"] < MAX_GROWTH_MIB
