"""The page about versions names tests and files that exist, and the words that processes really say."""

import re
from pathlib import Path

from scripts.protocol_table import is_test
from xdscore.build import HEADER

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "docs/reference/versions.md"
PAGE = FILE.read_text(encoding="utf-8")


def test_page__tests_and_files_it_names__exist() -> None:
    tests = re.findall(r"`(tests/[^`]+)`", PAGE)
    files = re.findall(r"\]\((?!https)([^)#]+)", PAGE)

    assert len(tests) == 3
    assert [name for name in tests if not is_test(ROOT, name)] == []
    assert [name for name in files if not (FILE.parent / name).exists()] == []


def test_page__header__is_the_one_that_is_sent() -> None:
    assert f"`{HEADER}`" in PAGE
