"""The page on texts of NACKs lists the dialects that have readers, and as many samples as there are."""

import json
import re
from collections import Counter
from pathlib import Path

from xdscore.nacktext import Dialect

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "nack-texts.md").read_text(encoding="utf-8")
SAMPLES = json.loads((ROOT / "tests" / "golden" / "nacktext" / "samples.json").read_text(encoding="utf-8"))


def test_page__each_dialect__has_a_row_with_the_number_of_its_samples() -> None:
    rows = {word: int(count) for word, count in re.findall(r"^\| `([a-z-]+)` \|.* (\d+) \|$", PAGE, re.MULTILINE)}

    assert rows == Counter(sample["family"] for sample in SAMPLES)
    assert rows.keys() == set(Dialect) - {Dialect.UNKNOWN}


def test_page__every_path_it_links__exists() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", PAGE)

    assert [target for target in targets if not (ROOT / "docs" / "reference" / target).exists()] == []
