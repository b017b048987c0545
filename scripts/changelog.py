"""The changelog's section of what is not released yet, and that of a release. Pure."""

import re
from datetime import date
from typing import Final

UNRELEASED: Final = "## Unreleased"

_UNRELEASED: Final = re.compile(rf"^{UNRELEASED}[ \t]*\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r"^[*-] \S", re.MULTILINE)


class ChangelogError(ValueError):
    """The changelog cannot be released; a sentence for whoever releases."""


def unreleased(text: str) -> str:
    """The text under "Unreleased". Raises ChangelogError where there are none or several, or nothing is in it."""
    sections = [found["body"].strip() for found in _UNRELEASED.finditer(text)]
    if len(sections) != 1:
        raise ChangelogError(f"CHANGELOG.md has {len(sections)} sections '{UNRELEASED}'; it must have one.")
    if not _ENTRY.search(sections[0]):
        raise ChangelogError(f"CHANGELOG.md has nothing under '{UNRELEASED}': say what users will notice.")
    return sections[0]


def released(text: str, version: str, day: date) -> str:
    """The changelog with what is unreleased as this version's section, below an empty one. Raises ChangelogError."""
    section = f"{UNRELEASED}\n\n## {version} - {day.isoformat()}\n\n{unreleased(text)}\n"
    replaced = _UNRELEASED.sub(lambda _: f"{section}\n", text, count=1)
    return replaced.rstrip("\n") + "\n"
