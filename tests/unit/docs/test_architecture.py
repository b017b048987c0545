"""The map must match the house."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"]
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#]+)")


@pytest.mark.parametrize("page", PAGES)
def test_page__every_path_it_links__exists(page: str) -> None:
    text = (ROOT / page).read_text()

    missing = [target for target in LINK.findall(text) if not ((ROOT / page).parent / target).exists()]

    assert missing == []


def test_house__every_room_of_the_map__is_a_package() -> None:
    rooms = re.findall(r"\]\(\.\./([a-z/]+)/\)", (ROOT / "docs/architecture.md").read_text())

    assert len(rooms) > 15
    assert [room for room in rooms if not any((ROOT / room).glob("*.py"))] == []
