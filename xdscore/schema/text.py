"""Text to plain trees with their positions: what both readers share. Knows nothing of protobuf or xDS.

Limits hold before or while the text is read, so that no input costs more than its own size (reliability threat 12). A
text with an error yields no document: half a file is never applied.
"""

from dataclasses import dataclass, replace
from enum import Enum

from xdscore.findings import Finding
from xdscore.limits import Limits
from xdscore.schema.codes import SYNTAX, TEXT_LIMIT
from xdscore.schema.positions import Positions

Tree = bool | int | float | str | list["Tree"] | dict[str, "Tree"] | None
"""A JSON value. Objects keep the order of the text; no float is infinite or not a number."""


class Media(Enum):
    """The two formats a manifest may be written in (interfaces.md section 3)."""

    JSON = "application/json"
    YAML = "application/yaml"

    @property
    def title(self) -> str:
        """The name of the format in sentences."""
        return self.name


_DEFAULTS = Limits()
# A text with more problems than this is not read any further; nobody corrects them one by one.
MAX_TEXT_FINDINGS = 100


@dataclass(frozen=True, slots=True)
class ManifestLimits:
    """Bounds on the text of one request's body (reliability.md (e)); an apply is given larger ones than the defaults. A
    node is any value in the text.
    """

    max_bytes: int = _DEFAULTS.body_bytes
    max_depth: int = _DEFAULTS.json_depth
    # 20,000 resources of 50 values each, which are about 200 MB of Python objects.
    max_nodes: int = 1_000_000
    max_resources: int = _DEFAULTS.apply_items


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a text: its tree, its number in the text counted from 0, and the lines and columns of its
    values.
    """

    tree: Tree
    number: int
    positions: Positions


@dataclass(frozen=True, slots=True)
class TextRead:
    """The result of reading a text. `documents` is empty when `findings` has an error."""

    documents: tuple[Document, ...]
    findings: tuple[Finding, ...]


def decode(body: bytes, media: Media, limits: ManifestLimits) -> str | Finding:
    """The body decoded as text, without a byte order mark; a finding when it is too large or not UTF-8."""
    if len(body) > limits.max_bytes:
        return TEXT_LIMIT.finding("", problem=f"has {len(body)} bytes", limit=f"{limits.max_bytes} bytes are")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        column = error.start - (body.rfind(b"\n", 0, error.start) + 1) + 1
        found = SYNTAX.finding(
            "", media=media.title, problem=f"byte {error.start} is not UTF-8", hint="Save the file as UTF-8."
        )
        return at(found, line, column)


def at(finding: Finding, line: int, column: int) -> Finding:
    """A copy of the finding with this line and column."""
    return replace(finding, line=line, column=column)
