"""Reads the facts of a rollout's present step: what the cohort has, who left, and who could be asked besides.

Everything comes from what ADS processes report of every client (truth.md H4); nothing is written. What clients answered
to is told by content, so that evidence about a name that changed meanwhile starts again by itself (rollouts.md R5).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

from controlplane.catalog.selectors import EnvironmentState
from controlplane.catalog.staging import OpenSide, StagedView
from controlplane.clients.ended import EndedStream, streams_ended
from controlplane.clients.holdings import holding_states
from controlplane.clients.in_use import ANSWER_WITHIN, Unused
from controlplane.clients.uses import Uses, unfollowed
from controlplane.rollouts.answers import Candidate, answer_of, candidates_of
from controlplane.rollouts.cohort import Member, kind_word
from controlplane.rollouts.facts import Answer, Asked, Facts, NewError, NotInUse, Others, Rules, Streams
from controlplane.rollouts.fleet import Known, ReadFleet, members_read
from controlplane.rollouts.judge import state_of
from controlplane.rollouts.models import Rollout, RolloutApproval, RolloutPick
from controlplane.rollouts.questions import webhooks_said
from controlplane.rollouts.stored import groups_of
from controlplane.rollouts.values import ClientState, Counts, Key
from controlplane.routecases.sides import cases_broken_by_rollout
from controlplane.snapshots.selectors import candidate_diff, rollout_table, snapshot_of_names
from xdscore.client_kinds import kind_of
from xdscore.environment_choice import ClientFacts
from xdscore.holdings import Holding
from xdscore.resource_types import by_word
from xdscore.sides import RolloutTable, Side, client_digest, side_of_digest


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of a rollout now. `cohort`: the clients on the candidate side, with what they said. `inside`: their
    digests. `control`: how many clients are connected on the other side. `holdings`: what each client has of each name
    that differs. `picks`: the rows of the clients that were chosen one by one, by client id.
    """

    facts: Facts
    fleet: ReadFleet
    cohort: tuple[Asked, ...] = ()
    inside: frozenset[str] = frozenset()
    control: int = 0
    holdings: Mapping[Key, Mapping[str, Holding]] = field(default_factory=dict)
    picks: Mapping[str, RolloutPick] = field(default_factory=dict)

    def counts(self, rules: Rules) -> Counts:
        """What the cohort said, in numbers."""
        states = Counter(state_of(asked, rules) for asked in self.cohort)
        asking = sum(states.values()) - states[ClientState.UNEXPOSED] - states[ClientState.GONE]
        return Counts(
            cohort=len(self.cohort),
            exposed=asking,
            acked=states[ClientState.TAKEN],
            refused=states[ClientState.REFUSED],
            silent=states[ClientState.SILENT],
            lost=states[ClientState.LOST],
        )


def is_served(environment: EnvironmentState, row: Rollout, side: OpenSide, names: Iterable[StagedView]) -> bool:
    """Whether ADS processes can send the present step: a snapshot was published that has its table and its names."""
    newest = max((max(view.since, view.generation) for view in names), default=0)
    built = environment.built_generation >= max(newest, row.generation)
    return built and rollout_table(environment_key=environment.key) == side.table


def facts_read(
    environment: EnvironmentState, row: Rollout, side: OpenSide, names: tuple[StagedView, ...], *, now: datetime
) -> Reading:
    """The facts of a rollout's present step. `names`: those that it still holds; `side`: the candidate side."""
    own = {view.key for view in names}
    diff = candidate_diff(environment_key=environment.key)
    fleet = members_read(environment_key=environment.key, names=diff, groups=groups_of(row))
    served = row.evidence_at is not None and is_served(environment, row, side, names)
    candidates = candidates_of(diff, frozenset(view.key for view in names if view.deleted))
    reader = _Cohort(environment.key, row, side.table, candidates, fleet, now=now)
    cohort = reader.read()
    return Reading(
        facts=Facts(
            served_s=(now - row.evidence_at).total_seconds() if served and row.evidence_at is not None else None,
            names=frozenset(diff),
            wanted=_wanted(known.member for known in fleet.clients.values()),
            cohort=cohort,
            others=_others(fleet.members, reader.inside),
            cohort_streams=reader.streams(Side.CANDIDATE),
            control_streams=reader.streams(Side.STABLE),
            errors=_errors(environment.key, candidates, own, cohort, reader.holdings),
            webhooks=webhooks_said(row, now),
            warming=_warming(environment.key, candidates, cohort),
            begun=row.begun,
            cases=cases_broken_by_rollout(environment_id=environment.id, names=own),
            approved=RolloutApproval.objects.filter(rollout=row, step=row.step, void=False).exists(),
        ),
        fleet=fleet,
        cohort=cohort,
        inside=reader.inside,
        control=sum(known.certain for known in fleet.clients.values()) - reader.connected,
        holdings=reader.holdings,
        picks=reader.picks,
    )


class _Cohort:
    """The clients on the candidate side. `inside`: their digests; `connected`: how many of them are connected;
    `picks`: the rows of those that were chosen one by one, by client id.
    """

    def __init__(
        self,
        environment_key: str,
        row: Rollout,
        table: RolloutTable,
        candidates: Mapping[Key, Candidate],
        fleet: ReadFleet,
        *,
        now: datetime,
    ) -> None:
        self._environment = environment_key
        self._row = row
        self._table = table
        self._candidates = candidates
        self._fleet = fleet
        self._now = now
        self.picks = {pick.client: pick for pick in RolloutPick.objects.filter(rollout=row)}
        ended = streams_ended(environment_key=environment_key, since=row.moved_at, keys=candidates.keys())
        self._ended: defaultdict[str, list[EndedStream]] = defaultdict(list)
        for each in ended:
            self._ended[each.client].append(each)
        self.holdings = _holdings(environment_key, candidates.keys())
        self._asked_for: dict[AbstractSet[Key], tuple[Key, ...]] = {}
        self._answers: dict[tuple[object, ...], Mapping[Key, Answer]] = {}
        self.inside = (
            frozenset(
                known.member.digest
                for known in fleet.clients.values()
                if side_of_digest(table, known.member.digest, known.facts) is Side.CANDIDATE
            )
            | table.picks
        )
        self.connected = sum(known.certain and known.member.digest in self.inside for known in fleet.clients.values())

    def read(self) -> tuple[Asked, ...]:
        """Each client of the cohort, by id; also those that are gone."""
        found = [
            self._asked(client, known)
            for client, known in self._fleet.clients.items()
            if known.member.digest in self.inside
        ]
        found += [
            self._gone(client, streams)
            for client, streams in self._ended.items()
            if client not in self._fleet.clients and self._was_inside(streams[-1].facts)
        ]
        known = {asked.client for asked in found}
        found += [
            Asked(pick.client, pick.kind, pick.identity, {}, self._asked_s(pick), connected=False)
            for pick in self.picks.values()
            if pick.client not in known
        ]
        return tuple(sorted(found, key=lambda asked: asked.client))

    def streams(self, side: Side) -> Streams:
        """How many clients the side has, or had since the step began, and how many of them ended a stream."""
        connected = {
            client
            for client, known in self._fleet.clients.items()
            if known.certain and (known.member.digest in self.inside) is (side is Side.CANDIDATE)
        }
        lost = {
            client
            for client, streams in self._ended.items()
            if any(each.by_client for each in streams)
            and self._was_inside(streams[-1].facts) is (side is Side.CANDIDATE)
        }
        return Streams(len(connected | lost), len(lost))

    def _was_inside(self, facts: ClientFacts) -> bool:
        digest = client_digest(self._environment, facts)
        return side_of_digest(self._table, digest, facts) is Side.CANDIDATE

    def _asked(self, client: str, known: Known) -> Asked:
        member = known.member
        return Asked(
            client,
            member.kind,
            member.identity,
            self._said(client, member.asks),
            self._asked_s(self.picks.get(client)),
            connected=known.certain,
            losses=self._losses(client),
        )

    def _said(self, client: str, asks: AbstractSet[Key]) -> Mapping[Key, Answer]:
        """What a client says of what it asks for; one object for all that say the same. Clients that have the same set
        have the same object of a name.
        """
        if not asks:
            return {}
        keys = self._asked_for.get(asks)
        if keys is None:
            keys = self._asked_for[asks] = tuple(asks)
        held = [self.holdings[key].get(client) for key in keys]
        place = (asks, *map(id, held))
        known = self._answers.get(place)
        if known is None:
            said = {key: answer_of(each, self._candidates[key]) for key, each in zip(keys, held, strict=True)}
            known = self._answers[place] = said
        return known

    def _gone(self, client: str, streams: list[EndedStream]) -> Asked:
        last = streams[-1]
        answers = {key: answer_of(holding, self._candidates[key]) for key, holding in last.held.items()}
        return Asked(
            client,
            kind_word(kind_of(*last.agent), self._fleet.apart),
            last.facts.identity,
            answers,
            self._asked_s(self.picks.get(client)),
            connected=False,
            losses=self._losses(client),
        )

    def _losses(self, client: str) -> int:
        return sum(
            each.by_client
            and any(answer_of(held, self._candidates[key]) is Answer.SENT for key, held in each.held.items())
            for each in self._ended.get(client, ())
        )

    def _asked_s(self, pick: RolloutPick | None) -> float | None:
        if self._row.evidence_at is None or (pick is not None and pick.asked_at is None):
            return None
        asked_at = max(self._row.evidence_at, pick.asked_at) if pick is not None and pick.asked_at else None
        return (self._now - (asked_at or self._row.evidence_at)).total_seconds()


def _holdings(environment_key: str, keys: Collection[Key]) -> Mapping[Key, Mapping[str, Holding]]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for word, name in keys:
        names[word].append(name)
    return {
        (word, name): held
        for word, some in names.items()
        for name, held in holding_states(environment_key=environment_key, word=word, names=some).items()
    }


def _wanted(members: Iterable[Member]) -> Mapping[Key, int]:
    """How many clients ask for each name. Thousands ask for the same."""
    clients: Counter[Key] = Counter()
    for asks, number in Counter(member.asks for member in members).items():
        clients.update(dict.fromkeys(asks, number))
    return clients


def _others(members: Iterable[Member], inside: frozenset[str]) -> Mapping[tuple[str, Key], Others]:
    """Who could be asked beside the cohort, by kind and name."""
    alike: defaultdict[tuple[str, AbstractSet[Key]], list[str]] = defaultdict(list)
    for member in members:
        if member.digest not in inside:
            alike[member.kind, member.asks].append(member.identity)
    clients: Counter[tuple[str, Key]] = Counter()
    identities: defaultdict[tuple[str, Key], set[str]] = defaultdict(set)
    for (kind, asks), of_them in alike.items():
        different = set(of_them)
        for key in asks:
            clients[kind, key] += len(of_them)
            identities[kind, key] |= different
    return {place: Others(number, frozenset(identities[place])) for place, number in clients.items()}


def _warming(
    environment_key: str, candidates: Mapping[Key, Candidate], cohort: Iterable[Asked]
) -> tuple[NotInUse, ...]:
    """What clients of the cohort acknowledged a while ago and do not use yet (truth.md H5)."""
    taken = [
        (asked.client, (*key, candidates[key].version))
        for asked in cohort
        if asked.asked_s is not None and asked.asked_s >= ANSWER_WITHIN.total_seconds() and asked.connected
        for key, answer in asked.answers.items()
        if answer is Answer.TAKEN and candidates[key].version
    ]
    clients: Counter[Key] = Counter()
    missing: defaultdict[Key, set[Key]] = defaultdict(set)
    for (_, (word, name, _version)), lacks in unfollowed(uses=Uses(environment_key), taken=taken).items():
        clients[word, name] += 1
        missing[word, name].update(lacks)
    return tuple(
        NotInUse(key, Unused(*key, clients[key], tuple(sorted(missing[key]))).sentence.removesuffix("."))
        for key in sorted(clients)
    )


def _errors(
    environment_key: str,
    candidates: Mapping[Key, Candidate],
    own: Collection[Key],
    cohort: Iterable[Asked],
    holdings: Mapping[Key, Mapping[str, Holding]],
) -> tuple[NewError, ...]:
    """The errors that the cohort was told of names of which the stable side has content, but for names that the rollout
    deletes.
    """
    bare = [key for key, candidate in candidates.items() if not candidate.version and not candidate.deleted]
    snapshot = snapshot_of_names(environment_key=environment_key, keys=bare) if bare else None
    if snapshot is None:
        return ()
    told: defaultdict[Key, list[str]] = defaultdict(list)
    for asked in cohort:
        for key, answer in asked.answers.items():
            holding = holdings[key].get(asked.client)
            if answer is Answer.ERROR and holding is not None and holding.code:
                told[key].append(holding.code)
    return tuple(
        NewError(key, min(codes), len(codes), key in own)
        for key, codes in sorted(told.items())
        if key[1] in snapshot.type_state(by_word[key[0]]).served
    )
