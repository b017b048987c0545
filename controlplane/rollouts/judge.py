"""Decides what the clients' answers to a step of a rollout mean. Pure: facts in, verdict with reasons out (rollouts.md
R11).

Failures come first, and all of them at once. Inconclusive never promotes (R9): where nobody was asked, or who was asked
went away or is silent (R10), a person decides. The same facts always give the same verdict.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.catalog.rollout_settings import Unexposed
from controlplane.rollouts.binomial import at_least
from controlplane.rollouts.cohort import MAX_PILOTS
from controlplane.rollouts.facts import Answer, Ask, Asked, Facts, Rules, Verdict, WebhookSaid
from controlplane.rollouts.values import ClientState, Key, Outcome
from controlplane.rollouts.votes import NOBODY, Poll, Result, Stand, polls_of, result_of

# rollouts.md "Gates": below so many clients nothing follows from a comparison of lost streams.
MIN_COMPARED: Final = 10
# A stream that was lost by chance must not end a rollout: the comparison is made again and again.
_CHANCE: Final = 0.01
# So many names or clients stand in one sentence.
_MAX_NAMED: Final = 3
NOT_SERVED: Final = "the next snapshot to be published, which has this step"


@dataclass(frozen=True, slots=True)
class _Read:
    """The facts of a step with what follows from each poll, by kind and name."""

    facts: Facts
    rules: Rules
    polls: Mapping[tuple[str, Key], Poll]
    results: Mapping[tuple[str, Key], Result]

    def standing(self, *stands: Stand) -> list[tuple[str, Key]]:
        """The polls that stand so, in order."""
        return sorted(place for place, result in self.results.items() if result.stand in stands)


def judge(facts: Facts, rules: Rules) -> Verdict:
    """The verdict on a step. It depends neither on the order of clients nor on how often it was asked for."""
    if facts.cases:
        return Verdict(Outcome.FAIL, facts.cases)  # nobody needs to be asked
    if not facts.begun:
        return _before(facts)
    if facts.served_s is None:
        return Verdict(None, waits_for=NOT_SERVED)
    polls = polls_of(facts.cohort, answer_within_s=rules.answer_within_s)
    results = {
        place: result_of(poll, facts.others.get(place, NOBODY), pilot=rules.pilot) for place, poll in polls.items()
    }
    read = _Read(facts, rules, polls, results)
    found = (
        _failures(read) or _asking(read) or _waiting(read) or _doubtful(read) or _consulting(read) or _approval(read)
    )
    return found or Verdict(Outcome.PASS, (*_praise(read), *_told(read)))


def state_of(asked: Asked, rules: Rules) -> ClientState:
    """What a client said as a whole, as pages show it."""
    answers = set(asked.answers.values())
    late = asked.asked_s is not None and asked.asked_s >= rules.answer_within_s
    if not answers:
        return ClientState.UNEXPOSED if asked.connected else ClientState.GONE
    if Answer.REFUSED in answers or (Answer.UNSURE in answers and (late or not asked.connected)):
        return ClientState.REFUSED
    if all(answer.final for answer in answers):
        return ClientState.TAKEN if Answer.TAKEN in answers else ClientState.UNEXPOSED
    if asked.losses:
        return ClientState.LOST
    if not asked.connected:
        return ClientState.GONE
    return ClientState.SILENT if late else ClientState.WAITING


# --- What fails


def _failures(read: _Read) -> Verdict | None:
    """Everything that fails the step at once; None where nothing does. Where something fails of which nobody can be
    blamed, nobody is: all is taken back (R7).
    """
    facts = read.facts
    reasons: list[str] = []
    blamed: set[Key] = set()
    unblamed = False
    for kind, key in read.standing(Stand.REFUSED):
        result, poll = read.results[kind, key], read.polls[kind, key]
        reasons.append(_refusal(kind, key, result, poll))
        if result.sure:
            blamed.add(key)
        else:
            unblamed = True
    for keys, reason in _losses(read):
        reasons.append(reason)
        blamed |= keys
        unblamed |= not keys
    if read.rules.errors:
        for error in facts.errors:
            reasons.append(
                f"{_clients(error.clients)} {'was' if error.clients == 1 else 'were'} told {error.code} of "
                f"{_named(error.key)}, of which the stable side has content"
            )
            if error.own:
                blamed.add(error.key)
            else:
                unblamed = True
    if lost := _lost_more(facts, read.rules):
        reasons.append(lost)
        unblamed = True
    if said := _webhook_words(facts.webhooks, Outcome.FAIL):
        reasons.extend(said)
        unblamed = True
    if not reasons:
        return None
    return Verdict(Outcome.FAIL, tuple(reasons), frozenset() if unblamed else frozenset(blamed))


def _refusal(kind: str, key: Key, result: Result, poll: Poll) -> str:
    of = result.refused + result.took
    if of == 1:
        said = f"the only {kind} that could be asked refuses {_named(key)}"
    else:
        said = f"{result.refused} of {of} that were asked of {kind} refuse {_named(key)}"
    if result.sure:
        return said
    # A client refused a response, and it was not found out what of it.
    return f"{said}, or something that came with it: {len(poll.unsure)} did not say what it is"


def _losses(read: _Read) -> Iterable[tuple[frozenset[Key], str]]:
    """For each kind that lost its streams twice before it answered: what is to blame, and a sentence. Only where it can
    be but one name, that is blamed.
    """
    by_kind: defaultdict[str, list[Key]] = defaultdict(list)
    for kind, key in read.standing(Stand.LOST):
        by_kind[kind].append(key)
    for kind, keys in by_kind.items():
        common = frozenset.intersection(
            *(
                frozenset(key for key, answer in asked.answers.items() if not answer.final)
                for key in keys
                for asked in read.polls[kind, key].lost
            )
        )
        blamed = common if len(common) == 1 else frozenset()
        times = max(read.results[kind, key].lost for key in keys)
        sent = f"after they were sent {_names(keys)} and before they answered"
        yield blamed, f"streams of {kind} ended {times} times {sent}"


def _lost_more(facts: Facts, rules: Rules) -> str:
    """That the cohort loses more streams than all others, if that is no chance; empty where it is not known."""
    cohort, control = facts.cohort_streams, facts.control_streams
    if rules.lost_percent is None or min(cohort.clients, control.clients) < MIN_COMPARED:
        return ""
    expected = min(control.lost / control.clients + rules.lost_percent / 100, 1.0)
    if at_least(cohort.lost, cohort.clients, expected) >= _CHANCE:
        return ""
    return (
        f"{cohort.lost} of {_clients(cohort.clients)} that have it lost a stream since, and {control.lost} of "
        f"{control.clients} that do not"
    )


# --- What is waited for


def _asking(read: _Read) -> Verdict | None:
    """That other clients are to be asked (R8, R9, R10); None where nobody is."""
    asks = (*(Ask(kind, key, read.results[kind, key].parties) for kind, key in read.standing(Stand.ASK)), *_new(read))
    if not asks:
        return None
    who = _list(sorted({each.kind for each in asks}))
    return Verdict(None, _told(read), asks=asks, waits_for=f"another client to be asked of {who}")


def _new(read: _Read) -> Iterable[Ask]:
    """What nobody of a kind was asked for, of a pilot: who connected, or asked for it, while the pilots were chosen has
    a pilot as well (R8), as long as more may be chosen.
    """
    room = MAX_PILOTS - len(read.facts.cohort) if read.rules.pilot else 0
    unasked = sorted(place for place in read.facts.others if place not in read.results)
    return (Ask(kind, key, frozenset()) for kind, key in unasked[: max(room, 0)])


def _waiting(read: _Read) -> Verdict | None:
    """What the step waits for while time alone may bring it; None where it does not."""
    facts, rules = read.facts, read.rules
    served_s = facts.served_s or 0.0
    reasons = _told(read)
    waits: list[tuple[str, float]] = []
    if read.standing(Stand.OPEN) or (not rules.pilot and _unanswered(facts, rules)):
        who = _unanswered(facts, rules)
        left = max((rules.answer_within_s - (asked.asked_s or 0.0) for asked in who), default=rules.answer_within_s)
        waits.append((f"{_clients(len(who))} to answer", left))
    elif not read.results and rules.unexposed is Unexposed.WAIT:
        return Verdict(None, reasons, waits_for="a client of the cohort to ask for something that changed")
    if served_s < rules.bake_s:
        waits.append(
            (f"the {rules.bake_s:g} s to be over for which this step goes on at least", rules.bake_s - served_s)
        )
    if not waits:
        return None
    left = max(left for _, left in waits)
    return Verdict(None, reasons, waits_for=" and for ".join(what for what, _ in waits), left_s=left)


def _unanswered(facts: Facts, rules: Rules) -> list[Asked]:
    """The clients of the cohort that may still answer in time, some of them once they are back."""
    return [
        asked
        for asked in facts.cohort
        if any(not answer.final for answer in asked.answers.values())
        and (asked.asked_s is None or asked.asked_s < rules.answer_within_s)
    ]


def _exposed(asked: Asked) -> bool:
    """Whether a client asks for content that differs between the sides."""
    return any(answer is not Answer.ERROR for answer in asked.answers.values())


# --- What time does not bring


def _doubtful(read: _Read) -> Verdict | None:
    """Why the answers that there are do not suffice to go on (R9, R10); None where they do."""
    facts, rules = read.facts, read.rules
    doubts: list[str] = []
    exposed = [asked for asked in facts.cohort if _exposed(asked)]
    here = [asked for asked in exposed if asked.connected or asked.losses]
    if exposed and not here:
        doubts.append(f"{_clients(len(exposed))} that had it went away, and nobody is left to say anything of it")
    if not exposed and rules.unexposed is not Unexposed.PROMOTE:
        doubts.append(_nobody(facts))
    for kind, key in read.standing(Stand.AWAY):
        doubts.append(f"who was asked of {kind} about {_named(key)} went away, and there is nobody else to ask")
    unheard = _unheard(read) if rules.last and exposed and not rules.pilot else []
    if unheard and rules.unexposed is not Unexposed.PROMOTE:
        doubts.append(f"nobody of the cohort asks for {_names(unheard)}, and others do")
    if share := _too_silent(read, here):
        doubts.append(share)
    doubts += _webhook_words(facts.webhooks, Outcome.INCONCLUSIVE)
    return Verdict(Outcome.INCONCLUSIVE, (*doubts, *_told(read))) if doubts else None


def _nobody(facts: Facts) -> str:
    if not facts.names:
        return "nothing differs between the sides that a client could be asked about"
    named = _names(sorted(facts.names))
    if not facts.cohort and not any(facts.wanted.values()):
        connected = facts.control_streams.clients
        return f"no connected client asks for {named}" if connected else f"no client is connected to ask for {named}"
    return f"0 of {_clients(len(facts.cohort))} in the cohort ask for {named}"


def _unheard(read: _Read) -> list[Key]:
    asked = {key for _, key in read.results}
    return sorted(key for key, clients in read.facts.wanted.items() if clients and key not in asked)


def _too_silent(read: _Read, exposed: list[Asked]) -> str:
    """That too many of those that were exposed did not answer in time; empty where it is few enough (R10). Where a
    silent pilot was replaced by one that answered, it does not count.
    """
    silent = [asked for asked in exposed if _is_silent(asked, read)]
    if not silent or len(silent) * 100 <= read.rules.silent_percent * len(exposed):
        return ""
    return (
        f"{len(silent)} of {_clients(len(exposed))} did not answer within {read.rules.answer_within_s:g} s; at most "
        f"{read.rules.silent_percent:g} % may be silent"
    )


def _is_silent(asked: Asked, read: _Read) -> bool:
    open_keys = [key for key, answer in asked.answers.items() if not answer.final and answer is not Answer.UNSURE]
    if not read.rules.pilot:
        return bool(open_keys)
    heard = {Stand.TAKEN, Stand.OUTVOTED}
    return any(read.results[asked.kind, key].stand not in heard for key in open_keys)


def _consulting(read: _Read) -> Verdict | None:
    """That webhooks are to be asked, or to answer; None where none is. They are asked once nothing else is in the way,
    so that they are told the verdict on which their word is asked.
    """
    return _unsaid(read.facts, (*_praise(read), *_told(read)))


def _unsaid(facts: Facts, reasons: tuple[str, ...]) -> Verdict | None:
    unsaid = [each for each in facts.webhooks if each.outcome is None]
    if not unsaid:
        return None
    left = [each.left_s for each in unsaid if each.left_s is not None]
    return Verdict(
        None,
        reasons,
        consults=len(left) < len(unsaid),
        waits_for=f"the answer of {_list([f'the webhook {each.where}' for each in unsaid])}",
        left_s=max(left, default=None),
    )


def _before(facts: Facts) -> Verdict:
    """The verdict on whether the first step may go out: that is what webhooks alone are asked."""
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE):
        if said := _webhook_words(facts.webhooks, outcome):
            return Verdict(outcome, tuple(said))
    return _unsaid(facts, ()) or Verdict(Outcome.PASS, tuple(_webhook_words(facts.webhooks, Outcome.PASS)))


def _approval(read: _Read) -> Verdict | None:
    """That a person's word is missing; None where it is not."""
    if read.rules.approve and not read.facts.approved:
        return Verdict(None, (*_praise(read), *_told(read)), waits_for="a person to approve this step")
    return None


# --- Words


def _praise(read: _Read) -> tuple[str, ...]:
    """Why the step passes."""
    took = sum(state_of(asked, read.rules) is ClientState.TAKEN for asked in read.facts.cohort)
    exposed = sum(map(_exposed, read.facts.cohort))
    if not exposed:
        return (_nobody(read.facts),)
    return (f"{took} of {_clients(exposed)} that were asked took all of it",)


def _told(read: _Read) -> tuple[str, ...]:
    """What does not decide and is worth to be known."""
    told: list[str] = []
    for kind, key in read.standing(Stand.OUTVOTED):
        result = read.results[kind, key]
        told.append(f"one {kind} refuses {_named(key)}, and {result.took} took it")
    unwanted = sorted(key for key in read.facts.names if not read.facts.wanted.get(key))
    if unwanted and read.results:
        told.append(f"no connected client asks for {_names(unwanted)}")
    cohort, control = read.facts.cohort_streams, read.facts.control_streams
    if read.rules.lost_percent is not None and cohort.lost and min(cohort.clients, control.clients) < MIN_COMPARED:
        told.append(
            f"{cohort.lost} of {_clients(cohort.clients)} lost a stream, and it takes {MIN_COMPARED} on either side to "
            "compare that"
        )
    told += [each.sentence for each in read.facts.warming[:_MAX_NAMED]]
    if len(read.facts.warming) > _MAX_NAMED:
        told.append(f"{len(read.facts.warming) - _MAX_NAMED} more resources were taken and are not used yet")
    told += _webhook_words(read.facts.webhooks, Outcome.PASS)
    return tuple(told)


_WEBHOOK_WORDS: Final = {
    Outcome.PASS: "agrees",
    Outcome.FAIL: "says that it must not go on",
    Outcome.INCONCLUSIVE: "cannot tell",
}


def _webhook_words(webhooks: Iterable[WebhookSaid], outcome: Outcome) -> list[str]:
    """A sentence for each of the webhooks that said this, with its reason."""
    return [
        f"the webhook {each.where} {_WEBHOOK_WORDS[outcome]}{f': {each.reason}' if each.reason else ''}"
        for each in webhooks
        if each.outcome is outcome
    ]


def _clients(number: int) -> str:
    return "1 client" if number == 1 else f"{number} clients"


def _named(key: Key) -> str:
    return f"the {key[0]} '{key[1]}'"


def _names(keys: Iterable[Key]) -> str:
    return _list([_named(key) for key in keys])


def _list(words: list[str]) -> str:
    shown = words[:_MAX_NAMED]
    if len(words) > _MAX_NAMED:
        return f"{', '.join(shown)} and {len(words) - _MAX_NAMED} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else "nothing"
