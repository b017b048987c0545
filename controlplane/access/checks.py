"""What must hold of a group or a rule before it is written. Pure: all findings at once, with pointers into the body."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from controlplane.access.values import GroupDraft, RuleDraft
from xdscore.client_groups import Trust
from xdscore.codes import CATALOGUE
from xdscore.environment_choice import Selector
from xdscore.findings import Finding
from xdscore.limits import Limits

PATTERN_REFUSED = CATALOGUE["XDS3050"]
GROUP_UNKNOWN = CATALOGUE["XDS3051"]
VERIFIED_DECLARES = CATALOGUE["XDS3052"]


# A letter comes first, so that a key is never taken for an id.
_KEY: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


def key_problem(key: str) -> str:
    """Why this cannot be the key of a group, as a sentence; empty when it can. A key stands in URLs and logs."""
    if _KEY.fullmatch(key):
        return ""
    return "A key has 1 to 63 lower case letters, digits and dashes, begins with a letter and ends with no dash."


def pattern_problem(pattern: str, limits: Limits) -> str:
    """Why this cannot be a pattern of names, as the end of a sentence; empty when it can (reliability threat 13)."""
    if pattern == "":
        return "is empty and matches nothing"
    if len(pattern) > limits.pattern_chars:
        return f"has {len(pattern)} characters; at most {limits.pattern_chars} are allowed"
    if pattern.count("*") > limits.pattern_wildcards:
        return f"has {pattern.count('*')} stars; at most {limits.pattern_wildcards} are allowed"
    if not pattern.isprintable():
        return "holds a character that cannot be printed"
    return ""


def group_findings(draft: GroupDraft, limits: Limits) -> tuple[Finding, ...]:
    """Everything that is wrong with a client group, as findings; empty when it can be saved."""
    return tuple(_group_findings(draft, limits))


def rule_findings(
    draft: RuleDraft, known_groups: Collection[str], environment_key: str, limits: Limits
) -> tuple[Finding, ...]:
    """Everything that is wrong with an access rule, as findings; empty when it can be saved. `known_groups`: the keys
    of the environment's client groups.
    """
    return tuple(_rule_findings(draft, known_groups, environment_key, limits))


def _group_findings(draft: GroupDraft, limits: Limits) -> Iterator[Finding]:
    for place, matcher in enumerate(draft.matchers):
        if draft.trust is Trust.VERIFIED and matcher.declares:
            yield VERIFIED_DECLARES.finding(f"/matchers/{place}")
    yield from _pattern_findings(draft.matchers, "/matchers", limits)


def selector_findings(selectors: Sequence[Selector], limits: Limits) -> tuple[Finding, ...]:
    """Everything that is wrong with the selectors of an environment, as findings; empty when they can be saved."""
    return tuple(_pattern_findings(selectors, "/selectors", limits))


def _pattern_findings(matchers: Sequence[Selector], parent: str, limits: Limits) -> Iterator[Finding]:
    for place, matcher in enumerate(matchers):
        pointer = f"{parent}/{place}"
        for field, pattern in matcher.as_json().items():
            values = pattern.values() if isinstance(pattern, dict) else [pattern]
            for value in values:
                problem = pattern_problem(str(value), limits)
                if problem:
                    yield PATTERN_REFUSED.finding(f"{pointer}/{field}", pattern=value, problem=problem)


def _rule_findings(
    draft: RuleDraft, known_groups: Collection[str], environment_key: str, limits: Limits
) -> Iterator[Finding]:
    problem = pattern_problem(draft.pattern, limits)
    if problem:
        yield PATTERN_REFUSED.finding("/pattern", pattern=draft.pattern, problem=problem)
    for place, key in enumerate(draft.client_groups):
        if key not in known_groups:
            yield GROUP_UNKNOWN.finding(f"/client_groups/{place}", group=key, environment=environment_key)
