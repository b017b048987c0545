"""Whom a rule that allows would open names to, in words and before it is saved."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from controlplane.access.checks import pattern_problem
from controlplane.access.review import rules_shadowed
from controlplane.access.selectors import access_table
from controlplane.access.values import RuleDraft, RuleState
from controlplane.console.access_words import any_of
from xdscore.access import AccessTable, Effect, Rule
from xdscore.codes import shown
from xdscore.limits import Limits
from xdscore.resource_types import by_word


@dataclass(frozen=True, slots=True)
class Opening:
    """The warning that an access rule would let every client read something.

    `confirms`: the text that the form has to send once its reader has agreed to exactly this. Empty where nobody needs
    to agree: the rule is for chosen groups, or lets every client read this already.
    """

    sentence: str
    confirms: str


def opening_of(draft: RuleDraft, *, number: int, first: bool, environment_key: str, limits: Limits) -> Opening | None:
    """The warning about an access rule that allows something; None for a rule that does not: one that denies or hides,
    is not enabled, or has no valid pattern. `number`: the rule's id, 0 for a new one; `first`: it is to go before all
    others. Raises NotFound.
    """
    if draft.effect is not Effect.ALLOW or not draft.enabled or pattern_problem(draft.pattern, limits):
        return None
    table = access_table(environment_key=environment_key)
    known = {group.key for group in table.groups}
    chosen = replace(draft, client_groups=tuple(key for key in draft.client_groups if key in known))
    whom = f"clients in {any_of(chosen.client_groups)}" if chosen.client_groups else "every client"
    sentence = f"Opens {_what(chosen)} to {whom} of '{environment_key}'."
    effects = _effects(table, chosen, number=number, first=first)
    asks = not draft.client_groups and not _stands(table, draft, number)
    confirms = f"{draft.pattern} {' '.join(sorted(draft.types))}" if asks else ""
    return Opening(" ".join((sentence, *effects)), confirms)


def _stands(table: AccessTable, draft: RuleDraft, number: int) -> bool:
    """Whether the access rule with this id, as it is stored, already allows what the draft does."""
    same = RuleState(number, replace(draft, message="")).rule
    return any(replace(rule, message="") == same for rule in table.rules)


def _what(draft: RuleDraft) -> str:
    name = shown(draft.pattern)
    kinds = tuple(by_word[word].title for word in draft.types)
    if "*" not in draft.pattern:
        return f"{any_of(kinds, ' and ')} '{name}'" if kinds else f"whatever is named '{name}', secrets excepted,"
    named = "" if draft.pattern == "*" else f" named '{name}'"
    return f"every {any_of(kinds)}{named}" if kinds else f"everything{named}, secrets excepted,"


def _effects(table: AccessTable, draft: RuleDraft, *, number: int, first: bool) -> Sequence[str]:
    """Sentences about rules that would decide less, or nothing, once the draft is in force; the draft may be among
    them. `number`: its id, 0 for a new rule; `first`: it is to go before all others.
    """
    own = number or max((rule.number for rule in table.rules), default=0) + 1
    after = _after(table, RuleState(own, draft).rule, replaces=bool(number), first=first)
    new = {rule for rule, _ in rules_shadowed(after)} - {rule for rule, _ in rules_shadowed(table)}
    found = [f"Rule {rule} then never decides." for rule in sorted(new - {own})]
    if own in new:
        found.append("A rule before it takes all of this: it would never decide.")
    if first and not number and "*" not in draft.pattern:
        whom = "them" if draft.client_groups else "this name"
        others = (rule for rule in _overruled(table, draft) if rule.number not in new)
        found += [f"Rule {rule.number} then no longer decides for {whom}." for rule in others]
    return found[:10]


def _after(table: AccessTable, made: Rule, *, replaces: bool, first: bool) -> AccessTable:
    """The table with the rule `made` in it: in the place of the rule with its id (`replaces`), or else before (`first`)
    or behind all others.
    """
    if replaces:
        return replace(table, rules=tuple(made if rule.number == made.number else rule for rule in table.rules))
    return replace(table, rules=(made, *table.rules) if first else (*table.rules, made))


def _overruled(table: AccessTable, draft: RuleDraft) -> Iterator[Rule]:
    """The rules that deny or hide something that the draft would decide instead, were it before all others."""
    for rule in table.matching(draft.pattern):
        same_type = not draft.types or not rule.types or not rule.types.isdisjoint(draft.types)
        if rule.effect is not Effect.ALLOW and same_type:
            yield rule
