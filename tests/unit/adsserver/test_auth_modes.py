"""A row of the ways in which data planes prove who they are is complete, or a sentence says which file lacks what."""

import re
from pathlib import Path

import pytest

from adsserver.identity.identification import VERIFIERS
from xdscore.auth_modes import FACTS, AuthMode

VERIFYING = "adsserver/identity/identification.py"
INTERFACES = Path(__file__).parents[3] / "docs" / "design" / "interfaces.md"


@pytest.mark.parametrize("mode", AuthMode)
def test_mode__of_the_variable__has_a_row_and_a_verifier(mode: AuthMode) -> None:
    assert mode in FACTS, f"Write a row for '{mode}' in xdscore/auth_modes.py."
    assert mode in VERIFIERS, (
        f"Write a verifier for '{mode}' and add it to VERIFIERS in adsserver/identity/identification.py."
    )


@pytest.mark.parametrize("mode", AuthMode)
def test_mode__of_the_table__is_documented_where_its_variable_is(mode: AuthMode) -> None:
    (row,) = re.findall(r"^\| `PARLEY_ADS_AUTH` \|.*$", INTERFACES.read_text(encoding="utf-8"), re.MULTILINE)

    assert f"`{mode}`" in row, f"Say what '{mode}' is in docs/design/interfaces.md, section 2, at PARLEY_ADS_AUTH."


def test_modes__beyond_loopback__are_safe_or_say_what_would_happen() -> None:
    silent = [mode for mode in AuthMode if not mode.facts.verified and not mode.facts.off_loopback]

    assert not silent, f"Fill off_loopback in xdscore/auth_modes.py: nobody proves anything in {silent}."
