"""Who asks for a name now, and what each of them is told: the answer for whoever names no client.

Where the rules tell clients apart there is no one answer; then it says so, and which rule says what of whom.
"""

from dataclasses import dataclass
from typing import Final

from controlplane.clients.fleet_selectors import fleet_asking
from controlplane.explain.answers import answer_of
from controlplane.explain.selectors import snapshot_asked
from controlplane.explain.values import Question
from xdscore.access import CLOSED, Effect, Rule
from xdscore.decision import Denied, Missing, decide
from xdscore.names import canonical

_MAX_RULES_TOLD: Final = 5
_VERBS: Final = {Effect.ALLOW: "allows", Effect.DENY: "denies", Effect.HIDE: "hides"}


@dataclass(frozen=True, slots=True)
class Asker:
    """A connected client that asks for the name. `code` is what it is told, empty where it is served; `rule` the access
    rule that refuses it, 0 where none does.
    """

    id: str
    node_id: str
    code: str = ""
    rule: int = 0


@dataclass(frozen=True, slots=True)
class Askers:
    """The clients that ask for a name, and the rules about it. `rules` match the name, in order, and `default` holds
    behind them; `clients` begin with those that are told something in its place.
    """

    rules: tuple[Rule, ...] = ()
    default: Effect = Effect.ALLOW
    clients: tuple[Asker, ...] = ()

    @property
    def depends(self) -> bool:
        """Whether what a client gets depends on who it is."""
        effects = {rule.effect for rule in self.rules}
        if not self.rules or self.rules[-1].client_groups:
            effects.add(self.default)
        return len(effects) > 1

    def rules_sentence(self, subject: str, environment: str) -> str:
        """A sentence that says which effect each of the rules has for whom, in order; the last speaks of everybody
        else.
        """
        parts = [_says(rule, "it" if place else subject) for place, rule in enumerate(self.rules[:_MAX_RULES_TOLD])]
        if more := len(self.rules) - len(parts):
            parts.append(f"{more} more rule{'s speak' if more > 1 else ' speaks'} of it")
        elif self.rules and self.rules[-1].client_groups:
            parts.append(f"for everybody else '{environment}' {_VERBS[self.default]} it")
        said = "; ".join(parts)
        return f"{said[:1].upper()}{said[1:]}." if said else ""

    def told(self, code: str = "") -> tuple[Asker, ...]:
        """The clients that are told this code in place of the name; without a code, those that are told any."""
        return tuple(each for each in self.clients if each.code and code in ("", each.code))


def askers_of(question: Question) -> Askers:
    """The clients that ask for this name itself. What clients were told at an earlier snapshot is not kept: then nobody
    is listed. Metadata of clients is not kept either, so groups over it hold nobody. Raises what `explain` does.
    """
    environment, kind, name = question.environment, question.kind, canonical(question.name)
    snapshot = snapshot_asked(question)
    if snapshot is None:
        return Askers()
    table = snapshot.access
    by_number = {rule.number: rule for rule in table.rules}
    rules = tuple(by_number[number] for number in table.row(kind, name) if number != CLOSED)
    default = table.by_default(kind).effect
    if question.at is not None:
        return Askers(rules, default)
    found = fleet_asking(environment_key=environment, word=kind.word, names={name, question.name})
    clients = []
    for client, facts in found.items():
        decision = decide(table.audience(environment, facts), kind, name, snapshot)
        told = answer_of(decision, kind=kind, name=name, environment=environment)
        rule = decision.rule if isinstance(decision, Denied | Missing) else 0
        clients.append(Asker(client, facts.node_id, told.code, rule))
    clients.sort(key=lambda each: (not each.code, each.node_id, each.id))
    return Askers(rules, default, tuple(clients))


def _says(rule: Rule, what: str) -> str:
    joined = "from" if rule.effect is Effect.HIDE else "to"
    whom = f"clients in {', '.join(sorted(rule.client_groups))}" if rule.client_groups else "everybody else"
    return f"rule {rule.number} {_VERBS[rule.effect]} {what} {joined} {whom}"
