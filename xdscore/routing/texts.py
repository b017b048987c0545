"""Texts against matchers, as Envoy compares them: `StringMatcher`, and regular expressions by RE2."""

from functools import lru_cache
from typing import Any, Final

import re2

from xdscore.schema.fixed_texts import fixed_start, lowered
from xdscore.schema.walk import AnyMessage

_KEPT_REGEXES: Final = 4_096
_MAX_SHOWN: Final = 200
_INT64_DIGITS: Final = 19


@lru_cache(maxsize=_KEPT_REGEXES)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def regex_fits(regex: AnyMessage, text: str) -> bool:
    """Whether the whole text matches a `RegexMatcher`. What RE2 cannot compile, which no proxy takes, matches nothing.
    Python's `re` is never given it (threat 13).
    """
    pattern: str = regex.regex
    if not text.startswith(fixed_start(pattern)[0]):  # compiling costs a hundred times as much
        return False
    program = _compiled(pattern)
    return program is not None and program.fullmatch(text) is not None


def regex_replaced(rewrite: AnyMessage, text: str) -> str:
    r"""The text with each match of a `RegexMatchAndSubstitute` replaced; `\1` to `\9` are the groups, `\0` the whole
    match, as RE2 rewrites.
    """
    program = _compiled(rewrite.pattern.regex)
    if program is None:
        return text
    parts: list[str] = []
    done = 0
    for match in program.finditer(text):
        parts += (text[done : match.start()], _expanded(rewrite.substitution, match))
        done = match.end()
    return "".join((*parts, text[done:]))


def _expanded(template: str, match: Any) -> str:
    parts: list[str] = []
    rest = iter(template)
    for char in rest:
        if char != "\\":
            parts.append(char)
            continue
        after = next(rest, "")
        parts.append((match.group(int(after)) or "") if after.isdecimal() and after.isascii() else after)
    return "".join(parts)


def string_fits(matcher: AnyMessage, text: str) -> bool | None:
    """Whether the text matches a `StringMatcher`; None where its kind is not judged (an extension)."""
    kind = matcher.WhichOneof("match_pattern")
    if kind == "safe_regex":
        return regex_fits(matcher.safe_regex, text)
    if kind == "custom" or kind is None:
        return None
    wanted: str = getattr(matcher, kind)
    if matcher.ignore_case:
        wanted, text = lowered(wanted), lowered(text)
    match kind:
        case "exact":
            return text == wanted
        case "prefix":
            return text.startswith(wanted)
        case "suffix":
            return text.endswith(wanted)
        case _:
            return wanted in text


def string_said(matcher: AnyMessage) -> str:
    """What a `StringMatcher` wants, in words."""
    kind = matcher.WhichOneof("match_pattern")
    case = " in any case" if matcher.ignore_case and kind != "safe_regex" else ""
    match kind:
        case "safe_regex":
            return f"a match of {quoted(matcher.safe_regex.regex)}"
        case "exact":
            return quoted(matcher.exact) + case
        case "prefix" | "suffix":
            return f"{'a beginning' if kind == 'prefix' else 'an end'} of {quoted(getattr(matcher, kind))}{case}"
        case "contains":
            return f"a text with {quoted(matcher.contains)} in it{case}"
        case _:
            return "what an extension decides"


def quoted(text: str) -> str:
    """The text in quotation marks, cut where it is long."""
    return f"'{text}'" if len(text) <= _MAX_SHOWN else f"'{text[:_MAX_SHOWN]}…'"


def whole_number(text: str) -> int | None:
    """The number that a text is, as proxies read a header: digits, a sign before and spaces around them allowed."""
    digits = text.strip(" \t\r\n\v\f")
    unsigned = digits[1:] if digits[:1] in {"+", "-"} else digits
    if not (unsigned.isascii() and unsigned.isdecimal()) or len(unsigned) > _INT64_DIGITS:
        return None
    number = int(digits)
    return number if -(2**63) <= number < 2**63 else None
