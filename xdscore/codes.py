"""The catalogue of codes: every `XDSnnnn` that Parley says, read once from `codes.toml`.

A code never changes its meaning and is never used again for another. docs/reference/codes.md is made from it. Values
that came from outside go through `shown` before they fill a template, so that a detail is always one short printable
line. Values of free text fields are never quoted: they may be secrets (reliability S5).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xdscore.findings import Finding, Severity

# Long enough for a full message name, short enough for a line of log.
MAX_SHOWN_CHARS = 120


def shown(text: object, limit: int = MAX_SHOWN_CHARS) -> str:
    """`text` on one printable line, cut in its middle when longer than `limit` characters."""
    line = "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in str(text))
    if len(line) <= limit:
        return line
    half = (limit - 1) // 2
    return f"{line[:half]}…{line[len(line) - (limit - 1 - half) :]}"


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the catalogue of codes, such as XDS1021.

    title, meaning: the heading and the text of its documentation.
    detail, hint: templates (`str.format`) of what people read.
    status: the HTTP status or google.rpc.Code of a code that is no finding; else empty.
    retired: since when and why the code is no longer used; else empty.
    """

    code: str
    title: str
    detail: str
    hint: str = ""
    severity: Severity = Severity.ERROR
    meaning: str = ""
    status: str = ""
    retired: str = ""

    def finding(self, pointer: str, *, hint: str = "", **values: object) -> Finding:
        """A finding of this code at `pointer`, with `values` put into its texts. `hint` replaces the catalogue's hint
        unless it is empty.
        """
        return self.filled(values, pointer=pointer, hint=hint)

    def filled(self, values: Mapping[str, object], *, pointer: str = "", hint: str = "") -> Finding:
        """A finding of this code at `pointer`, with `values` put into its texts. Like `finding`, but for values whose
        names are not keywords. `hint` replaces the catalogue's hint unless it is empty.
        """
        filled = {key: shown(value) for key, value in values.items()}
        return Finding(
            code=self.code,
            severity=self.severity,
            detail=self.detail.format(**filled),
            hint=hint or self.hint.format(**filled),
            pointer=pointer,
        )


def _catalogue() -> dict[str, Code]:
    rows = tomllib.loads(Path(__file__).with_name("codes.toml").read_text(encoding="utf-8"))
    return {
        code: Code(code=code, **{**row, "severity": Severity(row.get("severity", Severity.ERROR.value))})
        for code, row in rows.items()
    }


CATALOGUE: Mapping[str, Code] = _catalogue()
"""Every row by its code, in the order of the file."""
