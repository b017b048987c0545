"""What the clients of one kind say of one name, taken together: one client's word is not a fleet's (rollouts.md R8).
Pure.

Up to three clients of a kind are asked, of distinct verified identities where there are any. Two refusals fail, two
ACKs outvote one refusal, and where a kind has one client, its word counts. A client whose stream ended before it
answered is lost; the second loss fails (R9).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from controlplane.rollouts.facts import Answer, Asked, Others
from controlplane.rollouts.values import Key

# Beside so many that took it, one loss more than the first is what happens to streams anyway, and for the comparison of
# lost streams to judge.
_TAKERS_PER_LOSS = 10
NOBODY = Others(0)


class Stand(Enum):
    """How far the clients of one kind have come with one name."""

    TAKEN = "taken"
    OUTVOTED = "outvoted"  # one refuses, two took it
    REFUSED = "refused"
    LOST = "lost"  # twice
    OPEN = "open"  # an answer is awaited
    ASK = "ask"  # another client is to be asked
    SILENT = "silent"  # nobody answered in time
    AWAY = "away"  # who was asked is not connected any more


@dataclass(slots=True)
class Poll:
    """What the clients of one kind said of one name: lists of clients."""

    kind: str
    key: Key
    took: list[Asked] = field(default_factory=list)
    refused: list[Asked] = field(default_factory=list)
    unsure: list[Asked] = field(default_factory=list)  # refused for sure, but maybe not this
    pending: list[Asked] = field(default_factory=list)
    silent: list[Asked] = field(default_factory=list)
    lost: list[Asked] = field(default_factory=list)
    gone: list[Asked] = field(default_factory=list)
    # Lost or gone, and back in time perhaps.
    returning: list[Asked] = field(default_factory=list)

    def everybody(self) -> Iterable[Asked]:
        """All clients of the poll, some of them twice."""
        for some in (self.took, self.refused, self.unsure, self.pending, self.silent, self.lost, self.gone):
            yield from some


@dataclass(frozen=True, slots=True)
class Result:
    """What a poll means. `took`, `refused`, `lost`: how many voices each had; where all took it, how many clients they
    were. `sure`: whether it is certain that this name is what was refused. `parties`: the identities that were asked,
    where others are to be asked.
    """

    stand: Stand
    took: int
    refused: int
    lost: int
    sure: bool
    parties: frozenset[str]


def polls_of(cohort: Iterable[Asked], *, answer_within_s: float) -> Mapping[tuple[str, Key], Poll]:
    """The polls of a cohort, by kind and name."""
    polls: dict[tuple[str, Key], Poll] = {}
    for asked in cohort:
        late = asked.asked_s is not None and asked.asked_s >= answer_within_s
        for key, answer in asked.answers.items():
            if answer is Answer.ERROR:
                continue  # it has nothing to say of content
            place = (asked.kind, key)
            poll = polls.get(place)
            if poll is None:
                poll = polls[place] = Poll(asked.kind, key)
            _sort_in(poll, asked, answer, late=late)
    return polls


def _sort_in(poll: Poll, asked: Asked, answer: Answer, *, late: bool) -> None:
    match answer:
        case Answer.TAKEN:
            poll.took.append(asked)
        case Answer.REFUSED:
            poll.refused.append(asked)
        case Answer.UNSURE if late or not asked.connected:
            poll.unsure.append(asked)
        case _:
            if asked.losses:
                poll.lost.append(asked)
            if asked.connected:
                (poll.silent if late else poll.pending).append(asked)
            else:
                if not asked.losses:
                    poll.gone.append(asked)
                if not late:
                    poll.returning.append(asked)


def result_of(poll: Poll, others: Others, *, pilot: bool) -> Result:
    """What a poll means. `others`: who could be asked beside; `pilot`: whether who is silent is replaced, once."""
    if poll.took and not (poll.refused or poll.unsure or poll.lost):
        # Nearly always, and then nobody's voice has to be told from another's.
        return Result(Stand.TAKEN, len(poll.took), 0, 0, sure=False, parties=frozenset())
    said = _Voices(poll, others)
    refusing = said.refusing(poll)
    refused, took = len(refusing), len(said.voices(poll.took) - refusing)
    lost = said.losses(poll.lost)
    if refused < 2 <= lost and lost * _TAKERS_PER_LOSS > took:
        stand = Stand.LOST
    elif refused:
        stand = _refused(poll, refused, took, may_ask=said.fresh > 0)
    elif took:
        stand = Stand.TAKEN
    else:
        stand = _unheard(poll, may_ask=said.fresh > 0, pilot=pilot)
    sure = len(said.voices(poll.refused) & refusing) >= min(refused, 2)
    return Result(stand, took, refused, lost, sure, said.asked)


def _refused(poll: Poll, refused: int, took: int, *, may_ask: bool) -> Stand:
    """How a poll stands in which somebody refused (R8)."""
    if refused >= 2:
        return Stand.REFUSED
    if took >= 2:
        return Stand.OUTVOTED
    if poll.pending:
        return Stand.OPEN
    return Stand.ASK if may_ask else Stand.REFUSED


def _unheard(poll: Poll, *, may_ask: bool, pilot: bool) -> Stand:
    """How a poll stands in which nobody took it or refused it (R9, R10)."""
    if poll.pending:
        return Stand.OPEN
    if poll.silent and not poll.lost:
        return Stand.ASK if may_ask and pilot and len(poll.silent) == 1 else Stand.SILENT
    if may_ask:
        return Stand.ASK
    return Stand.OPEN if poll.returning else Stand.AWAY


class _Voices:
    """Whose word counts once. Where several identities were verified among those that ask for the name, an identity has
    one voice, whatever node ids it uses, and so have all clients without one together; otherwise each client has its
    own.
    """

    def __init__(self, poll: Poll, others: Others) -> None:
        everybody = {each.client: each.identity for each in poll.everybody()}
        self.asked = frozenset(everybody.values())
        verified = {identity for identity in self.asked | others.identities if identity}
        self._by_identity = len(verified) > 1
        # How many voices more there are to be asked.
        self.fresh = len(others.identities - self.asked) if self._by_identity else others.clients

    def _voice(self, asked: Asked) -> str:
        return asked.identity if self._by_identity else asked.client

    def voices(self, clients: Iterable[Asked]) -> frozenset[str]:
        return frozenset(self._voice(each) for each in clients)

    def refusing(self, poll: Poll) -> frozenset[str]:
        """The voices that refuse: what an identity says is what at least half of its clients say."""
        refused, took = self._counted((*poll.refused, *poll.unsure)), self._counted(poll.took)
        return frozenset(voice for voice, clients in refused.items() if clients >= took.get(voice, 0))

    def losses(self, clients: Collection[Asked]) -> int:
        """How often content may have ended streams: once for each voice, and again where the only client there is was
        lost again.
        """
        voices = self.voices(clients)
        if len(voices) == 1 and not self.fresh:
            return min(sum(each.losses for each in clients), 2)
        return len(voices)

    def _counted(self, clients: Iterable[Asked]) -> Mapping[str, int]:
        counted: defaultdict[str, int] = defaultdict(int)
        for each in clients:
            counted[self._voice(each)] += 1
        return counted
