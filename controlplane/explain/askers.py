"""Who asks for a name now, and what each of them was told: the answer for whoever names no client.

Where the rules tell clients apart there is no one answer; then it says so, and which rule says what of whom.
"""

from dataclasses import dataclass
from typing import Final

from controlplane.clients.fleet_selectors import fleet_asking
from controlplane.clients.holdings import holding_states
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
    """A connected client that asks for the name.

    `code`: the code of the error that it was told in place of the resource, or would be if it were not too old; empty
        where there is none.
    `rule`: the number of the access rule because of which it may not read the name; 0 where none is the reason.
    """

    id: str
    node_id: str
    code: str = ""
    rule: int = 0


@dataclass(frozen=True, slots=True)
class Askers:
    """The clients that ask for a name, and the access rules about it.

    `rules`: those that match the name, in order; `default`: the effect where none of them decides.
    `clients`: first those that are told an error in place of the resource.
    """

    rules: tuple[Rule, ...] = ()
    default: Effect = Effect.ALLOW
    clients: tuple[Asker, ...] = ()

    @property
    def depends(self) -> bool:
        """Whether different clients may get different answers for the name."""
        effects = {rule.effect for rule in self.rules}
        if not self.rules or self.rules[-1].client_groups:
            effects.add(self.default)
        return len(effects) > 1

    def rules_sentence(self, subject: str, environment: str) -> str:
        """A sentence that says, for each rule in order, which effect it has for whom; its end says what holds for all
        others.
        `subject`: what the sentence calls the name.
        """
        parts = [_says(rule, "it" if place else subject) for place, rule in enumerate(self.rules[:_MAX_RULES_TOLD])]
        if more := len(self.rules) - len(parts):
            parts.append(f"{more} more rule{'s speak' if more > 1 else ' speaks'} of it")
        elif self.rules and self.rules[-1].client_groups:
            parts.append(f"for everybody else '{environment}' {_VERBS[self.default]} it")
        said = "; ".join(parts)
        return f"{said[:1].upper()}{said[1:]}." if said else ""

    def told(self, code: str = "") -> tuple[Asker, ...]:
        """The clients that are told the error with this code in place of the resource; without a code, those that are
        told any error.
        """
        return tuple(each for each in self.clients if each.code and code in ("", each.code))


def askers_of(question: Question) -> Askers:
    """The connected clients that ask by name for the name in the question, and the rules about it. For an earlier
    snapshot no clients are listed, because what they were told then is not stored; nor is metadata, so groups by
    metadata hold nobody. Raises what `explain` raises.
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
    held = holding_states(environment_key=environment, word=kind.word, names=[name])[name] if found else {}
    clients = []
    for client, facts in found.items():
        code = held[client].code if client in held else ""
        rule = 0
        if code:
            decision = decide(table.audience(environment, facts), kind, name, snapshot)
            # What it was told stands (truth.md H4); a rule is named only if it is the reason for that.
            same = answer_of(decision, kind=kind, name=name, environment=environment).code == code
            rule = decision.rule if same and isinstance(decision, Denied | Missing) else 0
        clients.append(Asker(client, facts.node_id, code, rule))
    clients.sort(key=lambda each: (not each.code, each.node_id, each.id))
    return Askers(rules, default, tuple(clients))


def _says(rule: Rule, what: str) -> str:
    joined = "from" if rule.effect is Effect.HIDE else "to"
    whom = f"clients in {', '.join(sorted(rule.client_groups))}" if rule.client_groups else "everybody else"
    return f"rule {rule.number} {_VERBS[rule.effect]} {what} {joined} {whom}"
