"""What a resource name may be. Names are exact bytes: no folding, no trimming (reliability I13)."""

import unicodedata
from collections.abc import Iterable

# reliability.md (e): URI practice, log and index size.
MAX_NAME_BYTES = 1024

XDSTP = "xdstp:"

_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


def name_problem(name: str) -> str:
    """Why `name` cannot name a resource, as the end of a sentence that starts with "The name "; empty when it can."""
    if name == "":
        return "is empty"
    if name == "*":
        return "is '*', which means every resource in a subscription"
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > MAX_NAME_BYTES:
        return f"is {size} bytes long; at most {MAX_NAME_BYTES} are allowed"
    for position, character in enumerate(name):
        if unicodedata.category(character) in _UNPRINTABLE:
            return f"holds the control character U+{ord(character):04X} at position {position + 1}"
    return ""


def canonical(name: str) -> str:
    """The name in the one form of all that mean the same resource: an xdstp name with its context parameters sorted
    (xRFC TP1, protocol.md H1), any other name as it is.
    """
    if not name.startswith(XDSTP):
        return name
    whole, fragment_mark, fragment = name.partition("#")
    path, question, parameters = whole.partition("?")
    return path + question + "&".join(sorted(parameters.split("&"))) + fragment_mark + fragment


def glob_parts(pattern: str) -> tuple[str, ...]:
    """The texts of a pattern that stand before, between and after its stars; a single one when it has no star."""
    return tuple(pattern.split("*"))


def parts_match(parts: tuple[str, ...], text: str) -> bool:
    """Whether `text` matches the pattern that consists of these parts (`glob_parts`).

    Takes time linear in both, for the at most two stars that inputs may have (reliability threat 13); no regular
    expression is used.
    """
    head, tail = parts[0], parts[-1]
    if len(parts) == 1:
        return head == text
    if len(text) < len(head) + len(tail) or not text.startswith(head) or not text.endswith(tail):
        return False
    position, end = len(head), len(text) - len(tail)
    for part in parts[1:-1]:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


def glob_matches(pattern: str, text: str) -> bool:
    """Whether `text` matches `pattern`, where `*` stands for any run of characters and everything else for itself."""
    return parts_match(glob_parts(pattern), text)


def any_glob_matches(patterns: Iterable[str], text: str) -> bool:
    """Whether at least one of the patterns matches the text."""
    return any(glob_matches(pattern, text) for pattern in patterns)


def xdstp_authority(name: str) -> str:
    """The authority in a name `xdstp://AUTHORITY/TYPE/ID` (xRFC TP1); it says whose resource it is."""
    return name.removeprefix("xdstp://").partition("/")[0]
