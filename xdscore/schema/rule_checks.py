"""The meaning of each `validate.rules` option (protoc-gen-validate): one option set in, a list of checks out.

A check takes a value and returns what is wrong, or None. Only the kinds that occur in the xDS API exist here;
`UNSUPPORTED` names are found by a test that reads every option of every descriptor, so a new kind cannot pass silently.
Oracle: a real Envoy.
"""

import operator
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import re2
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from xdscore.codes import Code
from xdscore.schema.codes import CONSTANT, COUNT, DUPLICATE_ITEM, ENUM_UNDEFINED, LENGTH, PATTERN, RANGE, REGEX
from xdscore.schema.scalars import choices_text

Complaint = tuple[Code, dict[str, object]]
Check = Callable[[Any], Complaint | None]
# The options of one kind, e.g. validate.StringRules; a generated message without stubs.
Rules = Any

NANOS = 1_000_000_000
# Envoy's own expressions for header names and values (protoc-gen-validate, "well_known_regex"); not strict means only
# what would break the line of a header is refused.
_HEADER_NAME = r"^:?[0-9a-zA-Z!#$%&'*+-.^_|~\x60]+$"
_HEADER_VALUE = r"^[^\x00-\x08\x0A-\x1F\x7F]*$"
_HEADER_LOOSE = r"^[^\x00\x0A\x0D]*$"
_WELL_KNOWN = {1: (_HEADER_NAME, "be the name of an HTTP header"), 2: (_HEADER_VALUE, "be the value of an HTTP header")}
# A lower bound, and an upper one; of two options for the same bound the strict one counts.
_RANGE_PAIRS = (("gt", "gte"), ("lt", "lte"))
_RANGE_OPTIONS = frozenset(option for pair in _RANGE_PAIRS for option in pair)
_RANGE_WORDS = {"gt": "greater than", "gte": "at least", "lt": "less than", "lte": "at most"}
_RANGE_HOLDS = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
_NUMBER_KINDS = frozenset(
    {"float", "double", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"}
)


def scalar_checks(field: FieldDescriptor, kind: str, rules: Rules) -> list[Check]:
    """The checks that these rules mean for a value of this kind: that of a singular field, an item of a list, a key or
    value of a map, or what a wrapper message wraps.
    """
    given = {option.name for option, _ in rules.ListFields()}
    if kind in _NUMBER_KINDS:
        checks = _membership(rules, given, str) + _range(rules, given, float, "{:.10g}".format)
        return _but_empty(checks, rules, given)
    if kind == "duration":
        return _range(rules, given, duration_nanos, _seconds)
    if kind == "enum" and field.enum_type is not None:
        return _enum(rules, given, field.enum_type)
    simple = {"string": _string, "bytes": _bytes, "bool": _bool}.get(kind)
    return simple(rules, given) if simple is not None else []


def supported_options(kind: str) -> frozenset[str]:
    """The options that `scalar_checks` and `rules` understand in rules of this kind, such as "string"."""
    if kind in _NUMBER_KINDS:
        return _RANGE_OPTIONS | {"const", "in", "not_in", "ignore_empty"}
    return {
        "duration": _RANGE_OPTIONS | {"required"},
        "string": frozenset(
            {
                "const", "in", "not_in", "len", "min_len", "max_len", "min_bytes", "max_bytes", "pattern", "prefix",
                "suffix", "well_known_regex", "strict", "ignore_empty",
            }
        ),
        "bytes": frozenset({"min_len", "max_len"}),
        "bool": frozenset({"const"}),
        "enum": frozenset({"defined_only", "not_in"}),
        "any": frozenset({"required"}),
        "message": frozenset({"required", "skip"}),
        "repeated": frozenset({"min_items", "max_items", "unique", "items"}),
        "map": frozenset({"min_pairs", "keys", "values"}),
    }.get(kind, frozenset())  # fmt: skip


def duration_nanos(duration: Any) -> int:
    """A google.protobuf.Duration as nanoseconds."""
    total: int = duration.seconds * NANOS + duration.nanos
    return total


def _seconds(nanos: float) -> str:
    return f"{nanos / NANOS:.9f}".rstrip("0").rstrip(".") + "s"


def _membership(rules: Rules, given: set[str], show: Callable[[Any], str]) -> list[Check]:
    checks: list[Check] = []
    if "const" in given:
        constant = rules.const
        checks.append(_unless(lambda value: value == constant, CONSTANT, bound=show(constant)))
    if "in" in given:
        allowed = frozenset(getattr(rules, "in"))
        names = ", ".join(f"'{show(value)}'" for value in getattr(rules, "in"))
        checks.append(_unless(lambda value: value in allowed, CONSTANT, bound=f"one of {names}"))
    if "not_in" in given:
        refused = frozenset(rules.not_in)
        names = ", ".join(show(value) for value in rules.not_in)
        checks.append(_unless(lambda value: value not in refused, CONSTANT, bound=f"none of {names}"))
    return checks


def _unless(holds: Callable[[Any], bool], code: Code, **values: object) -> Check:
    complaint = (code, values)
    return lambda value: None if holds(value) else complaint


def _range(rules: Rules, given: set[str], number: Callable[[Any], float], show: Callable[[float], str]) -> list[Check]:
    """The checks of the bounds in these rules. A lower bound above the upper one means "outside of"
    (protoc-gen-validate, "Numerics").
    """
    if not given & _RANGE_OPTIONS:
        return []
    chosen = (next((option for option in pair if option in given), None) for pair in _RANGE_PAIRS)
    bounds = [(option, number(getattr(rules, option))) for option in chosen if option is not None]
    outside = len(bounds) == 2 and bounds[0][1] > bounds[1][1]
    bound = (" or " if outside else " and ").join(f"{_RANGE_WORDS[option]} {show(limit)}" for option, limit in bounds)
    enough = any if outside else all

    def check(value: Any) -> Complaint | None:
        given_number = number(value)
        if enough(_RANGE_HOLDS[option](given_number, limit) for option, limit in bounds):
            return None
        return RANGE, {"bound": bound, "given": show(given_number)}

    return [check]


def _bool(rules: Rules, given: set[str]) -> list[Check]:
    return _membership(rules, given, lambda value: "true" if value else "false")


def _bytes(rules: Rules, given: set[str]) -> list[Check]:
    return _length(rules, given, "min_len", "max_len", len, "byte")


def _string(rules: Rules, given: set[str]) -> list[Check]:
    checks = _membership(rules, given, str)
    checks += _length(rules, given, "len", "len", len, "character")
    checks += _length(rules, given, "min_len", "max_len", len, "character")
    checks += _length(rules, given, "min_bytes", "max_bytes", lambda text: len(text.encode()), "byte")
    if "prefix" in given:
        checks.append(
            _unless(lambda text: text.startswith(rules.prefix), PATTERN, bound=f"start with '{rules.prefix}'")
        )
    if "suffix" in given:
        checks.append(_unless(lambda text: text.endswith(rules.suffix), PATTERN, bound=f"end with '{rules.suffix}'"))
    if "pattern" in given:
        checks.append(_unless(compiled(rules.pattern).search, PATTERN, bound=f"match {rules.pattern}"))
    if rules.well_known_regex in _WELL_KNOWN:
        pattern, words = _WELL_KNOWN[rules.well_known_regex]
        if "strict" in given and not rules.strict:
            pattern, words = _HEADER_LOOSE, "be free of line breaks and NUL"
        checks.append(_unless(compiled(pattern).search, PATTERN, bound=words))
    return _but_empty(checks, rules, given)


def _but_empty(checks: list[Check], rules: Rules, given: set[str]) -> list[Check]:
    """The checks, unless the rules say that an empty value is one that is not given."""
    return [_unless_empty(check) for check in checks] if "ignore_empty" in given and rules.ignore_empty else checks


def _unless_empty(check: Check) -> Check:
    return lambda value: check(value) if value else None


def _length(
    rules: Rules, given: set[str], low_name: str, high_name: str, measure: Callable[[Any], int], unit: str
) -> list[Check]:
    low = getattr(rules, low_name) if low_name in given else 0
    high = getattr(rules, high_name) if high_name in given else None
    return [] if not low and high is None else [_size_check(LENGTH, low, high, measure, unit)]


def _size_check(code: Code, low: int, high: int | None, measure: Callable[[Any], int], unit: str) -> Check:
    words = []
    if low:
        words.append(f"at least {low}")
    if high is not None:
        words.append(f"at most {high}")
    bound = f"{' and '.join(words)} {_plural(unit, low if high is None else high)}"

    def check(value: Any) -> Complaint | None:
        size = measure(value)
        if size < low or (high is not None and size > high):
            return code, {"bound": bound, "given": size or "none"}
        return None

    return check


def _plural(unit: str, count: int) -> str:
    return unit if count == 1 else unit + "s"


def _enum(rules: Rules, given: set[str], descriptor: EnumDescriptor) -> list[Check]:
    defined = (
        frozenset(value.number for value in descriptor.values)
        if "defined_only" in given and rules.defined_only
        else None
    )
    refused = frozenset(rules.not_in)
    choices = choices_text(descriptor)

    def check(value: int) -> Complaint | None:
        if (defined is not None and value not in defined) or value in refused:
            known = descriptor.values_by_number.get(value)
            return ENUM_UNDEFINED, {"given": known.name if known else value, "choices": choices}
        return None

    return [check]


def list_checks(rules: Rules, noun: str) -> list[Check]:
    """The checks of a list or map as a whole, such as its length. `noun` is how complaints call its items."""
    given = {option.name for option, _ in rules.ListFields()}
    low = rules.min_items if "min_items" in given else rules.min_pairs if "min_pairs" in given else 0
    high = rules.max_items if "max_items" in given else rules.max_pairs if "max_pairs" in given else None
    checks = [_size_check(COUNT, low, high, len, noun)] if low or high is not None else []
    if "unique" in given and rules.unique:
        checks.append(_unique)
    return checks


def _unique(values: Sequence[Any]) -> Complaint | None:
    first: dict[Any, int] = {}
    for index, value in enumerate(values):
        earlier = first.setdefault(value, index)
        if earlier != index:
            return DUPLICATE_ITEM, {"first": earlier, "second": index}
    return None


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


@cache
def compiled(pattern: str) -> Any:
    """The compiled RE2 program of a regular expression that stands in the API's own rules."""
    return re2.compile(pattern, _options())


@lru_cache(maxsize=4096)
def regex_problem(pattern: str) -> str:
    """Why RE2, and so Envoy, cannot compile a regular expression; empty when it can. Python's `re` is never given it
    (threat 13).
    """
    try:
        re2.compile(pattern, _options())
    except re2.error as error:
        problem = error.args[0] if error.args else "unknown"
        return problem.decode("utf-8", "replace") if isinstance(problem, bytes) else str(problem)
    return ""


def regex_check(pattern: str) -> Complaint | None:
    """The complaint that RE2, and so a proxy, cannot compile this regular expression; None when it can."""
    problem = regex_problem(pattern)
    return (REGEX, {"problem": problem}) if problem else None
