"""Why a client does, or does not, have a resource: facts in, answer and rungs out (texts.md W2). Pure.

The rungs are asked in W2's order; what W2 asks last is `Ladder.next`. While a rollout is open, or the name waits for
one, a rung more says on which side the client is. What nothing tells is "cannot know", never a guess.
"""

from controlplane.explain.reached import answered_rung, headline_of, now_rung, sent_rung
from controlplane.explain.rollout_rung import rollout_rung, staged_sentence
from controlplane.explain.subscribed import asking, subscribed_rung
from controlplane.explain.values import (
    Asked,
    ClientSide,
    Has,
    Ladder,
    Link,
    NameFacts,
    Question,
    Rung,
    RungState,
    clock,
    listed,
    skipped,
)
from xdscore.access import Effect, RuleStep
from xdscore.decision import Missing, Serve, Undecided, Withheld
from xdscore.holdings import HoldingState


def ladder_of(question: Question, name: NameFacts, client: ClientSide | None) -> Ladder:
    """Explain why a client has, or does not have, a name: the questions (rungs) one after the other, and the answer.
    `client`: None where no client was named.
    """
    stranger = client is not None and client.environment != question.environment
    here = None if stranger else client
    away = _away(question, name, client, stranger=stranger)
    asked = asking(here, question)
    rungs = (
        _identity(client),
        _environment(question, client),
        skipped(3, "subscribed", away) if _of_epoch(question) else subscribed_rung(question, here, asked),
        _exists(question, name),
        _access(question, name, here),
        *_delivery(question, name, here, asked, away),
    )
    rollout = rollout_rung(name, here.side if here is not None else None, named=here is not None)
    decisive = _decisive(rungs)
    has = _has(decisive)
    headline = headline_of(name, here) if decisive.number == _ANSWERED else ""
    sentence = name.answer.sentence if has is Has.YES else decisive.text
    sentence = f"{headline}. {sentence}" if headline else sentence
    return Ladder(
        has,
        "" if stranger else _code(name, here, decisive),
        _as_of(question, sentence),
        (*rungs, rollout) if rollout is not None else rungs,
        () if has is Has.YES or question.time is not None else _next(name, here, decisive),
        _links(question, name, client),
        "" if stranger else name.told or _told(name, here),
        headline,
        refused=_is(here, HoldingState.NACKED),
        node_id=client.node_id if client is not None else "",
    )


def _delivery(
    question: Question, name: NameFacts, client: ClientSide | None, asked: Asked | None, away: str
) -> tuple[Rung, Rung, Rung]:
    """The rungs of the explanation that say what this client was sent, what it answered, and what it runs now. `asked`:
    its subscription; `away`: why these rungs are skipped, empty where they are not.
    """
    sent, answered, now = skipped(6, "sent", away), skipped(7, "answered", away), skipped(8, "now", away)
    if client is None or _of_epoch(question):
        return sent, answered, now
    if asked is not None and isinstance(name.decision, Serve):
        sent, answered = sent_rung(name, client), answered_rung(name, client)
    return sent, answered, now_rung(name, client)


def _as_of(question: Question, sentence: str) -> str:
    """The sentence, with the time and the snapshot that it is about where the question is about a time."""
    if question.time is None:
        return sentence
    return f"As of {clock(question.time)}, when snapshot {question.at} was served: {sentence}"


def _of_epoch(question: Question) -> bool:
    """Whether the question is about a snapshot at no particular time, so that there is no telling what clients had."""
    return question.at is not None and question.time is None


def _told(name: NameFacts, client: ClientSide | None) -> str:
    """The error that the client was told, where what is known of it here would let it have the resource; else empty."""
    told = _is(client, HoldingState.ERROR_SENT) and isinstance(name.decision, Serve)
    return client.held.message if told and client is not None and client.held is not None else ""


def _code(name: NameFacts, client: ClientSide | None, decisive: Rung) -> str:
    """The code of the error because of which the name is not served, by the rung that decided; empty where the name is
    served, and where it is uncertain which access rule decides.
    """
    if _told(name, client) and client is not None and client.held is not None:
        return client.held.code
    served = isinstance(name.decision, Serve)
    unsure = decisive.number == _ACCESS and decisive.state is RungState.UNKNOWN and name.default is not None
    return "" if served or unsure else name.answer.code


_ENVIRONMENT, _SUBSCRIBED, _EXISTS, _ACCESS, _SENT, _ANSWERED, _NOW = range(2, 9)
# Which rung's failure is the reason: access is decided before existence (architecture.md law 2), and nothing that is
# not served can be missing from a subscription.
_ORDER = (_ENVIRONMENT, _ACCESS, _EXISTS, _SUBSCRIBED, _SENT, _ANSWERED)


def _decisive(rungs: tuple[Rung, ...]) -> Rung:
    by_number = {rung.number: rung for rung in rungs}
    wrong = (by_number[each] for each in _ORDER if by_number[each].state in (RungState.FAIL, RungState.UNKNOWN))
    return next(wrong, by_number[_EXISTS])


def _has(decisive: Rung) -> Has:
    match decisive.state:
        case RungState.FAIL:
            return Has.NO
        case RungState.UNKNOWN:
            return Has.UNKNOWN
        case _:
            return Has.YES


def _identity(client: ClientSide | None) -> Rung:
    if client is None:
        return skipped(1, "identity", "No client was named: the answer is for clients in no group.")
    if client.identity:
        return Rung(1, "identity", RungState.OK, f"'{client.identity}', verified; its node id is '{client.node_id}'.")
    return Rung(1, "identity", RungState.OK, f"Node id '{client.node_id}', as it says; nothing was verified.")


def _environment(question: Question, client: ClientSide | None) -> Rung:
    if client is None:
        return Rung(2, "environment", RungState.OK, f"'{question.environment}'.")
    if client.environment != question.environment:
        text = f"This client belongs to '{client.environment}', not to '{question.environment}'."
        return Rung(2, "environment", RungState.FAIL, text)
    groups = f"groups: {', '.join(client.groups)}" if client.groups else "in no group"
    return Rung(2, "environment", RungState.OK, f"'{client.environment}', {groups}.")


def _exists(question: Question, name: NameFacts) -> Rung:
    def rung(state: RungState, text: str) -> Rung:
        return Rung(4, "exists", state, text)

    subject = f"{question.kind.title} '{question.name}'"
    match name.existence:
        case Serve() if isinstance(name.decision, Withheld):
            return rung(RungState.FAIL, name.answer.sentence)  # from clients of this kind alone
        case Serve(content=content):
            revision = f"revision {name.served}" if name.served else f"version {content.version}"
            return rung(RungState.OK, f"In snapshot {name.epoch}, {revision}.{_held_back(name)}")
        case Withheld(finding=finding):
            because = _because(name) or finding.rstrip(".")
            held = f" Its newest revision is {name.written}." if name.written else ""
            return rung(RungState.FAIL, f"{subject} is withheld: {because}.{held}")
        case Undecided(reason=reason):
            return rung(RungState.UNKNOWN, f"Nothing is decided for {subject} yet: {reason}.")
        case _:
            return rung(RungState.FAIL, _missing(question, name, subject))


def _missing(question: Question, name: NameFacts, subject: str) -> str:
    where = f" Environments that hold it: {listed(name.elsewhere)}." if name.elsewhere else ""
    if name.written and name.deletion:
        gone = f"by {name.written.author} at {clock(name.written.at)} in change {name.written.change}"
        return f"{subject} was removed from '{question.environment}' {gone}.{where}"
    if name.written and question.at is not None:
        return f"Snapshot {question.at} does not hold {subject}; its newest revision is {name.written}.{where}"
    if name.written and name.staged is not None:
        return f"{subject} is saved ({name.written}) and {staged_sentence(name.staged, name.rollout)}.{where}"
    if name.written and name.waiting:
        return f"{subject} is saved ({name.written}) and waits for a build.{where}"
    if isinstance(name.existence, Missing) and name.existence.removed:
        return f"{subject} was removed from '{question.environment}'.{where}"
    # Also what is hidden reads so here: the rung of access says that a rule hides it.
    near = f" Closest: {listed(name.answer.near)}." if name.answer.near else ""
    return f"Nobody has published {subject} in '{question.environment}'.{near}{where}"


def _held_back(name: NameFacts) -> str:
    """A sentence that says why a newer revision is held back while an older one is served; empty where none is."""
    if name.written is None or name.served is None or name.written.number == name.served.number:
        return ""
    if name.staged is not None and not name.deletion:
        return f" The newer r{name.written.number} {staged_sentence(name.staged, name.rollout)}."
    if name.staged is not None:
        return f" Its deletion (r{name.written.number}) {staged_sentence(name.staged, name.rollout)}."
    if name.quarantined:
        return f" The newer r{name.written.number} is in quarantine."
    if name.findings:
        return f" The newer r{name.written.number} is held back: {_because(name)}."
    return f" The newer r{name.written.number} waits for a build." if name.waiting else ""


def _because(name: NameFacts) -> str:
    return "; ".join(finding.rstrip(".") for finding in name.findings)


def _access(question: Question, name: NameFacts, client: ClientSide | None) -> Rung:
    def rung(state: RungState, text: str) -> Rung:
        return Rung(5, "access", state, text)

    if name.default is None:
        return rung(RungState.UNKNOWN, name.answer.sentence)
    steps, default = name.answer.rules, name.default
    decided = next((step for step in steps if step.decided), None)
    effect = decided.rule.effect if decided else default
    unsure = _unsure(steps, effect, client)
    if unsure is not None:
        groups = listed(tuple(sorted(unsure.rule.client_groups)))
        text = f"Rule {unsure.rule.number} speaks of {groups}, which look at metadata that is not kept of this client."
        return rung(*_by_what_it_was_sent(client, text))
    passed = [f"rule {step.rule.number} speaks of others" for step in steps if not step.decided]
    before = f" Before it, {', '.join(passed)}." if passed else ""
    if effect is not Effect.ALLOW:
        return rung(RungState.FAIL, f"{name.answer.sentence}{before}")
    by = f"Rule {decided.rule.number} allows it." if decided else f"No rule decides; '{question.environment}' allows."
    return rung(RungState.OK, f"{by}{before}")


def _by_what_it_was_sent(client: ClientSide | None, doubt: str) -> tuple[RungState, str]:
    """How a doubt about access comes out by what the client was sent, which was decided with all that is known of it
    while it is connected (truth.md H1, H2).
    """
    if _is(client, HoldingState.ERROR_SENT) or _is(client, HoldingState.SILENT):
        return RungState.FAIL, f"{doubt} It was decided that it does not get this."
    if _is(client, HoldingState.ACKED) or _is(client, HoldingState.NACKED) or _is(client, HoldingState.SENT):
        return RungState.OK, f"{doubt} It was sent this, so nothing denies it."
    return RungState.UNKNOWN, doubt


def _unsure(steps: tuple[RuleStep, ...], effect: Effect, client: ClientSide | None) -> RuleStep | None:
    """The first rule that would decide otherwise if the client belonged to a group of which that is not known; None
    where there is none. `effect`: the decision without such groups.
    """
    if client is None:
        return None
    doubted = (step for step in steps if not step.decided and not client.doubtful.isdisjoint(step.rule.client_groups))
    return next((step for step in doubted if step.rule.effect is not effect), None)


_NEXT = {
    _ENVIRONMENT: "Ask about the client's own environment, or change the selectors that lead it there.",
    _SUBSCRIBED: "Look at what the client asks for: its bootstrap, or the resource that should name this one.",
    _SENT: "Ask again in a moment.",
    _ANSWERED: "Write a new revision, or quarantine this one.",
}


def _next(name: NameFacts, client: ClientSide | None, decisive: Rung) -> tuple[str, ...]:
    if decisive.number == _SUBSCRIBED and decisive.state is RungState.UNKNOWN:
        return ("Start the client, or look at its network; it takes its configuration when it connects.",)
    if decisive.number == _ANSWERED and (decisive.state is RungState.UNKNOWN or _is(client, HoldingState.SENT)):
        return ("Ask again in a moment, or look at the client's own log.",)
    if decisive.number == _ACCESS and decisive.state is RungState.UNKNOWN and name.default is not None:
        return ("Try the client with its metadata: POST access/test.",)
    step = _NEXT.get(decisive.number, name.answer.next_step)
    return (step,) if step else ()


def _links(question: Question, name: NameFacts, client: ClientSide | None) -> tuple[Link, ...]:
    environment = ("environments", question.environment)
    found = [Link("client", ("clients", client.id))] if client else []
    if name.written is not None:
        found.append(Link("history", (*environment, "resources", question.kind.word, question.name, "revisions")))
        found.append(Link("change", ("changes", name.written.change)))
    if name.epoch:
        found.append(Link("snapshot", (*environment, "snapshots", str(name.epoch))))
    if name.answer.rule:
        found.append(Link("rule", (*environment, "rules", str(name.answer.rule))))
    if name.rollout:
        found.append(Link("rollout", ("rollouts", name.rollout)))
    return (*found, *(Link("incident", ("incidents", each)) for each in name.incidents))


def _is(client: ClientSide | None, state: HoldingState) -> bool:
    """Whether the client is known to have the name in this state."""
    return client is not None and client.held is not None and client.held.state is state


def _away(question: Question, name: NameFacts, client: ClientSide | None, *, stranger: bool) -> str:
    """The reason, as a sentence, why the rungs about what the client was sent are skipped; empty where they are not.
    `stranger`: whether the client belongs to another environment.
    """
    if client is None:
        return "No client was named."
    if stranger:
        return "The client belongs to another environment."
    if _of_epoch(question):
        return f"What clients did at snapshot {question.at} is not kept."
    return "Nothing is served under this name." if not isinstance(name.decision, Serve) else "It does not ask for it."
