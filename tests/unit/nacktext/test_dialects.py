"""A dialect of NACK texts is complete, or a sentence says which file lacks what."""

from pathlib import Path

import pytest

from tests.unit.nacktext.test_properties import IN_GRAMMAR
from tests.unit.nacktext.test_samples import SAMPLES
from xdscore.nacktext import Dialect
from xdscore.nacktext.attribution import READERS

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "nack-texts.md"
TABLE = "xdscore/nacktext/attribution.py"
KNOWN = [dialect for dialect in Dialect if dialect is not Dialect.UNKNOWN]


def test_dialects__each__has_one_reader_and_the_unknown_is_asked_last() -> None:
    readers = [dialect for dialect, _ in READERS]

    assert sorted(readers) == sorted(Dialect), (
        "xdscore/nacktext/attribution.py: READERS lacks a dialect, or has one twice."
    )
    assert readers[-1] is Dialect.UNKNOWN, (
        "xdscore/nacktext/attribution.py: what stands behind `unknown` is never asked."
    )


@pytest.mark.parametrize("dialect", KNOWN)
def test_dialect__known__has_samples_a_grammar_and_a_row(dialect: Dialect) -> None:
    samples = {sample.attribution().dialect for sample in SAMPLES}
    grammars = {written_in for _, _, written_in in IN_GRAMMAR.values()}

    assert dialect in samples, f"No sample of '{dialect}' is in tests/golden/nacktext/samples.json."
    assert dialect in grammars, f"No grammar of '{dialect}' is in tests/unit/nacktext: grammar.py, test_properties.py."
    assert f"\n| `{dialect}` |" in REFERENCE.read_text(encoding="utf-8"), (
        f"{REFERENCE.name} has no row for '{dialect}'."
    )
