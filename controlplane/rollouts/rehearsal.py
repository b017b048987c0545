"""A rehearsal: which clients are asked, and what their answers mean. Pure.

One client that refuses makes the verdict, for nobody else is asked instead of it; silence is no consent (rollouts.md
"Rehearsal", R10).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from controlplane.rollouts.cohort import Member
from controlplane.rollouts.facts import Answer
from controlplane.rollouts.values import Key

MAX_NAMES: Final = 200
MAX_CLIENTS: Final = 50
MAX_OF_A_KIND: Final = 5
DEFAULT_WITHIN_S, MIN_WITHIN_S, MAX_WITHIN_S = 10, 1, 60

NOT_ASKED: Final = "It does not ask for it."
GONE: Final = "Its stream ended before it answered."
UNSENT: Final = "It was not sent within the time."
SILENT: Final = "It did not answer within the time."
BESIDE: Final = "It was sent together with what the client refused, and its answer to this one alone is not known."
UNSURE: Final = "It may mean another resource of the same response."


class ResultState(StrEnum):
    """What one client said of one resource of a rehearsal (interfaces.md section 8)."""

    TAKEN = "taken"
    REFUSED = "refused"
    SILENT = "silent"
    NOT_ASKED = "not_asked"  # it does not ask for the resource, or nobody can be sent it


class RehearsalVerdict(StrEnum):
    """What the answers of all clients mean: all took all that they ask for, one refused something, or neither."""

    TAKEN = "taken"
    REFUSED = "refused"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """One resource of a rehearsal. `needs`: what its content refers to. `held`: why nobody can be sent it; empty where
    somebody can. `own`: whether the caller named it; else it differs because of one that they named.
    """

    key: Key
    needs: tuple[Key, ...] = ()
    held: str = ""
    own: bool = True


@dataclass(frozen=True, slots=True)
class Said:
    """What a client said of one name. `words`: its own where it refused, or the error that it was told."""

    answer: Answer
    words: str = ""


@dataclass(frozen=True, slots=True)
class Listener:
    """A client of a rehearsal, with what it said of each name that it asks for. `connected`: it has a stream."""

    client: str
    node_id: str
    kind: str
    said: Mapping[Key, Said] = field(default_factory=dict)
    connected: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """What one client said of one resource."""

    client: str
    node_id: str
    kind: str
    type: str
    name: str
    state: ResultState
    message: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What all clients said so far. `settled`: nobody will say anything else. `quiet`: somebody might still ask for
    something, and nothing else is waited for.
    """

    verdict: RehearsalVerdict
    results: tuple[Result, ...]
    settled: bool = False
    quiet: bool = False


def of_each_kind(members: Sequence[Member], count: int) -> tuple[Member, ...]:
    """So many clients of each kind among `members`: those that ask for most, of other identities than those before
    where there are any.
    """
    by_kind: defaultdict[str, list[Member]] = defaultdict(list)
    for member in sorted(members, key=lambda each: (-len(each.asks), each.node_id, each.client)):
        by_kind[member.kind].append(member)
    chosen: list[Member] = []
    for _, some in sorted(by_kind.items()):
        seen: Counter[str] = Counter()
        ranked = []
        for member in some:
            ranked.append((seen[member.identity] if member.identity else 0, member))
            seen[member.identity] += 1
        chosen += [member for _, member in sorted(ranked, key=lambda each: each[0])[:count]]
    return tuple(chosen)


def report_of(names: Sequence[Rehearsed], clients: Sequence[Listener]) -> Report:
    """What the clients' answers mean: one result for each client and each of `names`, but for what the client does not
    ask for among those that the caller did not name.
    """
    results: list[Result] = []
    waiting = asking = doubtful = False
    for client in clients:
        refuses = any(said.answer is Answer.REFUSED for said in client.said.values())
        for name in names:
            said = client.said.get(name.key)
            if said is None and not name.own:
                continue
            results.append(_result(client, name, said, refuses=refuses))
            if name.held:
                doubtful = True
            elif said is not None:
                waiting |= client.connected and said.answer in {Answer.SENT, Answer.UNSENT, Answer.UNSURE}
                doubtful |= said.answer is Answer.ERROR
        asking |= _may_ask_yet(names, client)
    verdict = _verdict(results, clients, doubtful=doubtful)
    return Report(verdict, tuple(results), settled=not waiting and not asking, quiet=not waiting)


def _result(client: Listener, name: Rehearsed, said: Said | None, *, refuses: bool) -> Result:
    if name.held:
        state, message = ResultState.NOT_ASKED, f"It cannot be sent to anybody: {name.held}"
    elif not client.connected and (said is None or said.answer not in {Answer.TAKEN, Answer.REFUSED}):
        state, message = ResultState.SILENT, GONE
    elif said is None:
        state, message = ResultState.NOT_ASKED, NOT_ASKED
    else:
        state, message = _words(said, refuses=refuses)
    return Result(client.client, client.node_id, client.kind, *name.key, state, message)


def _words(said: Said, *, refuses: bool) -> tuple[ResultState, str]:
    """What an answer is called, and in words. `refuses`: it is certain of another name that the client refuses it."""
    if said.answer is Answer.UNSURE:
        if refuses:
            return ResultState.SILENT, BESIDE
        return ResultState.REFUSED, f"{said.words} ({UNSURE})".strip()
    return {
        Answer.TAKEN: (ResultState.TAKEN, ""),
        Answer.REFUSED: (ResultState.REFUSED, said.words),
        Answer.ERROR: (ResultState.NOT_ASKED, f"It was told that there is nothing of it. {said.words}".strip()),
        Answer.SENT: (ResultState.SILENT, SILENT),
        Answer.UNSENT: (ResultState.SILENT, UNSENT),
    }[said.answer]


def _may_ask_yet(names: Collection[Rehearsed], client: Listener) -> bool:
    """Whether a client took something that refers to a name for which it does not ask yet: it may do so in a moment."""
    if not client.connected:
        return False
    taken = {key for key, said in client.said.items() if said.answer is Answer.TAKEN}
    needed = {target for name in names if name.key in taken for target in name.needs}
    return any(name.key in needed and name.key not in client.said and not name.held for name in names)


def _verdict(results: Collection[Result], clients: Collection[Listener], *, doubtful: bool) -> RehearsalVerdict:
    states = Counter(each.state for each in results)
    if states[ResultState.REFUSED]:
        return RehearsalVerdict.REFUSED
    takers = {each.client for each in results if each.state is ResultState.TAKEN}
    everybody = all(client.client in takers for client in clients)
    if states[ResultState.SILENT] or doubtful or not everybody:
        return RehearsalVerdict.INCONCLUSIVE
    return RehearsalVerdict.TAKEN
