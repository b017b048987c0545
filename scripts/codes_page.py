"""Print docs/reference/codes.md, made from the catalogue of codes (`make codes`)."""

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from xdscore.codes import CATALOGUE, Code

_RANGES = {
    "XDS10": "Text, schema and content of manifests",
    "XDS11": "Containers of manifests, and what goes with them",
    "XDS20": "References between resources",
    "XDS21": "Delivery and access",
    "XDS30": "Requests and changes",
    "XDS40": "Stream protocol",
    "XDS50": "Refusals by clients",
    "XDS90": "Faults of Parley's own",
}
_HEAD = """# Codes

Everything Parley says no to, or warns of, has a code that never changes its meaning. This page is made from
[xdscore/codes.toml](../../xdscore/codes.toml) by `make codes`; `GET /api/v1/errors/{code}` answers with the same words.
Words in braces are filled in where the code is said.
"""


def page() -> str:
    """The text of docs/reference/codes.md, made from the catalogue of codes."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD.rstrip("\n")
    said = ""
    for row in CATALOGUE.values():
        if row.code[:5] != said:
            said = row.code[:5]
            yield from ("", f"## {said[3:]}xx: {_RANGES[said]}")
        yield from _row(row)


def _row(row: Code) -> Iterator[str]:
    yield from ("", f"### {row.code}: {row.title}", "")
    if row.retired:
        yield from (f"Retired: {row.retired}", "")
    kind = f"Status {row.status}." if row.status else f"A finding: {row.severity.value}."
    yield from (f"{kind} {row.meaning}", "", f"* Says: {row.detail}")
    if row.hint:
        yield f"* Hint: {row.hint}"


if __name__ == "__main__":
    sys.stdout.write(page())
