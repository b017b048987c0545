"""What a list of access rules leaves to be desired: rules that never decide, cases that come out otherwise. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from controlplane.access.values import Case, CaseResult, SavedCase
from xdscore.access import AccessTable, Effect, Rule
from xdscore.codes import CATALOGUE
from xdscore.environment_choice import ClientFacts
from xdscore.findings import Finding, Severity
from xdscore.names import canonical
from xdscore.resource_types import RESOURCE_TYPES, SECRET_WORDS, ResourceType, by_word
from xdscore.snapshot import EntryKey

SHADOWED = CATALOGUE["XDS3053"]
NOBODY = CATALOGUE["XDS3054"]
CASE_BROKEN = CATALOGUE["XDS3055"]
CLOSED_TO_ALL = CATALOGUE["XDS3056"]

# Stands for whatever a star may stand for: no pattern holds it, because it cannot be printed. A pattern that matches
# another one in which it stands for the stars matches everything that the other one does, and only such a pattern does.
_ANYTHING = "\uffff"


RuleFinding = tuple[int, Finding]
"""The number of a rule, and a finding about it."""


def rules_shadowed(table: AccessTable, called: Callable[[int], str] = str) -> tuple[RuleFinding, ...]:
    """The number of each rule that can never decide, with a finding: one rule before it already decides for all
    clients, types and names that it is about. `called`: what people call the rule with a number.
    """
    found: list[RuleFinding] = []
    for rule in table.rules:
        kinds = [kind for kind in RESOURCE_TYPES if rule.covers(kind)]
        for earlier in table.matching(rule.pattern.replace("*", _ANYTHING)):
            if earlier.number == rule.number:
                break
            if _takes_all_of(earlier, rule, kinds):
                numbers = {"rule": called(rule.number), "before": called(earlier.number)}
                said = SHADOWED.finding("", pattern=rule.pattern, **numbers)
                found.append((rule.number, said))
                break
    return tuple(found)


def rules_for_nobody(table: AccessTable, clients: Sequence[ClientFacts]) -> tuple[RuleFinding, ...]:
    """The number of each rule for client groups to which none of these clients belongs, with a finding. A group that
    looks at metadata counts as having clients, because metadata is not stored.
    """
    inhabited = {
        group.key
        for group in table.groups
        if any(matcher.metadata for matcher in group.matchers) or any(group.has(client) for client in clients)
    }
    return tuple(
        (
            rule.number,
            NOBODY.finding("", rule=rule.number, pattern=rule.pattern, groups=", ".join(sorted(rule.client_groups))),
        )
        for rule in table.rules
        if rule.client_groups and inhabited.isdisjoint(rule.client_groups)
    )


def secrets_closed(table: AccessTable, environment_key: str, keys: Iterable[EntryKey]) -> tuple[Finding, ...]:
    """One finding for each name in `keys` that is a secret's and that no rule allows any client to read."""
    allowing = {rule.number for rule in table.rules if rule.effect is Effect.ALLOW}
    return tuple(
        CLOSED_TO_ALL.finding("", type=word, name=name, environment=environment_key).about(word, name)
        for word, name in keys
        if word in SECRET_WORDS and allowing.isdisjoint(table.row(by_word[word], name))
    )


def case_run(table: AccessTable, environment_key: str, case: Case) -> CaseResult:
    """Try a case: the effect that the rules have for its client and name, and the rule that decided."""
    audience = table.audience(environment_key, case.client)
    ruling = table.ruling(audience, by_word[case.type], canonical(case.name))
    return CaseResult(case, ruling.effect, ruling.rule, ruling.message)


def cases_broken(
    before: AccessTable,
    after: AccessTable,
    environment_key: str,
    saved: Iterable[SavedCase],
    called: Callable[[int], str] = str,
) -> tuple[Finding, ...]:
    """A finding for each saved case that fails under the rules `after` a change. Its severity is ERROR where the case
    is blocking and passed `before`: a change is not refused for what was broken already. `called`: what people call the
    rule with a number.
    """
    found = []
    for each in saved:
        result = case_run(after, environment_key, each.case)
        if result.ok:
            continue
        finding = CASE_BROKEN.finding(
            "",
            case=each.id,
            type=each.case.type,
            name=each.case.name,
            expect=each.case.expect.value,
            effect=result.effect.value,
            by=f"rule {called(result.rule)}" if result.rule else "the environment's default",
        )
        refuses = each.blocking and case_run(before, environment_key, each.case).ok
        found.append(finding if refuses else replace(finding, severity=Severity.WARNING))
    return tuple(found)


def _takes_all_of(earlier: Rule, rule: Rule, kinds: Sequence[ResourceType]) -> bool:
    speaks_of_all = not earlier.client_groups or (rule.client_groups and rule.client_groups <= earlier.client_groups)
    return bool(speaks_of_all) and all(earlier.covers(kind) for kind in kinds)
