"""JSON to a plain tree, by the standard parser; what that would let pass and we do not is looked for by `json_survey`.

RFC 8259 leaves duplicate keys, huge numbers and depth to the reader; all three are refused here, with their places.
"""

import json
import math
import re

from xdscore.findings import Finding
from xdscore.schema.codes import SYNTAX, TEXT_LIMIT
from xdscore.schema.json_index import JsonIndex
from xdscore.schema.json_survey import MAX_NUMBER_CHARS, survey
from xdscore.schema.positions import Positions
from xdscore.schema.text import Document, ManifestLimits, Media, TextRead, Tree, at

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_ODD_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class _SuspectError(Exception):
    """The standard parser met a value that it accepts and Parley refuses. What and where it is, `json_survey` finds
    out.
    """


def read_json(text: str, limits: ManifestLimits) -> TextRead:
    """The document in a JSON text; without it, and with findings, when the text cannot be used."""
    problem = _size_problem(text, limits)
    if problem is not None:
        return TextRead((), (problem,))
    try:
        tree: Tree = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        return TextRead((), (_syntax_finding(error, text),))
    except _SuspectError:
        return TextRead((), survey(text))
    if _ODD_ESCAPE.search(text):
        findings = survey(text)
        if findings:
            return TextRead((), findings)
    return TextRead((Document(tree, 0, Positions(JsonIndex(text).locate)),), ())


def _object(pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _SuspectError
    return members


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARS:
        raise _SuspectError
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _SuspectError
    return value


def _constant(_: str) -> float:
    raise _SuspectError


def _syntax_finding(error: json.JSONDecodeError, text: str) -> Finding:
    hint = ""
    if text[:1] not in ("{", "["):
        hint = "If this is YAML, say so: Content-Type: application/yaml."
    problem = error.msg[:1].lower() + error.msg[1:]
    if text.strip() == "":
        problem, hint = "it is empty", "Send a manifest."
    return at(SYNTAX.finding("", media=Media.JSON.title, problem=problem, hint=hint), error.lineno, error.colno)


def _size_problem(text: str, limits: ManifestLimits) -> Finding | None:
    """The finding that a text nests too deeply or holds too many values; None when it does neither. Decided before the
    text is parsed, because the parser recurses and empty lists cost 30 times their text.
    """
    values = text.count(",") + text.count("[") + text.count("{")
    brackets = text.count("[") + text.count("{")
    if values <= limits.max_nodes and brackets <= limits.max_depth:
        return None
    bare = _STRING.sub('""', text)
    values = bare.count(",") + bare.count("[") + bare.count("{")
    if values > limits.max_nodes:
        return TEXT_LIMIT.finding("", problem="holds too many values", limit=f"{limits.max_nodes} values are")
    depth = 0
    for match in _BRACKET.finditer(bare):
        depth += 1 if match[0] in "[{" else -1
        if depth > limits.max_depth:
            found = TEXT_LIMIT.finding("", problem="nests too deeply", limit=f"{limits.max_depth} levels are")
            return at(found, bare.count("\n", 0, match.start()) + 1, match.start() - bare.rfind("\n", 0, match.start()))
    return None
