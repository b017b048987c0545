"""Says what the fleet made of a change: how many clients were sent it, and what they answered (decisions U2).

Derived from facts each time it is asked, so that it needs no keeping up to date. A change is settled once every ADS
process that reports serves its snapshot, and each client it was sent to has answered, left, or been silent for 30 s; of
clients nothing more is expected 60 s after it was published. A process that refuses the snapshot keeps it from its
clients, so that what they say is about something else.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cached_property

from django.db.models import Q

from controlplane.builder.selectors import ChangeProgress, ChangeState, change_progress
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import change_get, versions_after
from controlplane.clients.clock import database_now
from controlplane.clients.delivery import EXPECTED_FOR, Reaction, Written, reactions
from controlplane.clients.in_use import NotInUse
from controlplane.clients.serving import Behind, replicas_behind
from controlplane.clients.spreading import spread
from controlplane.clients.uses import Uses, not_in_use
from controlplane.history.convergence import Convergence, convergence
from controlplane.incidents.models import IncidentClient
from controlplane.incidents.values import IncidentCause
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.selectors import snapshot_list

SETTLED_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Delivery:
    """How many clients were sent content of a change, and what they answered (interfaces.md section 4). Clients that
    are in none of `acked`, `nacked` and `silent` have not answered yet, or left.

    `settled`: whether no more answers are to come.
    `behind`: the ADS processes that do not serve the change yet.
    """

    clients: int = 0
    acked: int = 0
    nacked: int = 0
    silent: int = 0
    settled: bool = False
    behind: tuple[Behind, ...] = ()


class Answer(StrEnum):
    """What a client answered to a change. `SENT` stands for all clients that were sent it, whatever they answered,
    `NOT_IN_USE` for those that acknowledged it and do not use it yet (truth.md H5).
    """

    SENT = "sent"
    ACKED = "acked"
    NACKED = "nacked"
    SILENT = "silent"
    NOT_IN_USE = "not_in_use"


_COUNTED = {Answer.ACKED: Reaction.ACKED, Answer.NACKED: Reaction.NACKED, Answer.SILENT: Reaction.SILENT}


class ChangeReading:
    """What clients made of one change. Each thing is read once, however much is asked of it. `progress`: how far the
    change has come.
    """

    def __init__(self, change: Change, progress: ChangeProgress) -> None:
        self.change = change
        self.progress = progress

    @cached_property
    def delivery(self) -> Delivery:
        """How clients have answered the change so far. Before it is published all counts are 0."""
        if self.progress.state is not ChangeState.PUBLISHED or self.progress.epoch is None:
            return Delivery()
        row = self._snapshot
        if row is None:
            # Its snapshot is older than what is kept.
            return Delivery(settled=True)
        behind = replicas_behind(environment_key=self._environment, lineage=str(row.lineage), epoch=row.epoch)
        count = Counter(self._reactions.values())
        clients = len(self._reactions) - count[Reaction.EXPECTED]
        return Delivery(
            clients=clients,
            acked=count[Reaction.ACKED],
            nacked=count[Reaction.NACKED],
            silent=count[Reaction.SILENT],
            settled=not behind and _settled(count, clients, database_now() - row.at),
            behind=behind,
        )

    @cached_property
    def not_in_use(self) -> NotInUse:
        """Which clients have what the change wrote, for 30 s at least, and did not ask for what it needs (truth.md
        H5).
        """
        row = self._snapshot
        if row is None:
            return NotInUse()
        versions = {(word, name): version for word, name, _, version in self._revisions}
        return not_in_use(uses=Uses(self._environment), versions=versions, since=row.at)

    def convergence(self) -> Convergence | None:
        """How the change spread among the clients that were connected when it was published; None where it is not
        published, or nothing is kept of that time.
        """
        row = self._snapshot
        if row is None:
            return None
        if not self._revisions:
            return convergence((), 0)
        return spread(environment_key=self._environment, written=self._written, since=row.at, reactions=self._reactions)

    def clients(self, answer: Answer) -> frozenset[str]:
        """The ids of the clients that `delivery`, or `not_in_use`, counts under `answer`."""
        if answer is Answer.NOT_IN_USE:
            return self.not_in_use.clients
        if self._snapshot is None:
            return frozenset()
        found = self._reactions.items()
        if answer is Answer.SENT:
            return frozenset(client for client, reaction in found if reaction is not Reaction.EXPECTED)
        return frozenset(client for client, reaction in found if reaction is _COUNTED[answer])

    @property
    def _environment(self) -> str:
        return self.change.environment.key

    @cached_property
    def _snapshot(self) -> SnapshotRow | None:
        """The snapshot that published the change; None where it is not published, or that snapshot is not stored any
        more.
        """
        epoch = self.progress.epoch
        if self.progress.state is not ChangeState.PUBLISHED or epoch is None:
            return None
        return snapshot_list(environment_key=self._environment).filter(epoch=epoch).first()

    @cached_property
    def _revisions(self) -> Sequence[tuple[str, str, int, str]]:
        """What the change wrote: the word of each type, the name, the number of the revision, its version."""
        return tuple(self.change.revisions.values_list("resource__type", "resource__name", "number", "version"))

    @cached_property
    def _written(self) -> Mapping[str, Mapping[str, Written]]:
        """What the change wrote, by the word of the type and then by name."""
        written: dict[str, dict[str, Written]] = {}
        later = versions_after(change=self.change) if self._revisions else {}
        for word, name, _, version in self._revisions:
            written.setdefault(word, {})[name] = Written(version, later.get((word, name), frozenset()))
        return written

    @cached_property
    def _reactions(self) -> Mapping[str, Reaction]:
        """How far each client has come with the published change, by client id. Clients that ask for what it wrote but
        were not sent it yet are included.
        """
        row = self._snapshot
        if row is None:
            return {}
        found = dict(reactions(environment_key=self._environment, written=self._written, since=row.at))
        # Who refused is told apart from its next answer, which may be the ACK of what stands in.
        refusing = _refusing(self.change, [each[:3] for each in self._revisions])
        found.update(dict.fromkeys(refusing, Reaction.NACKED))
        return found


def change_delivery(*, change: Change, progress: ChangeProgress) -> Delivery:
    """How clients have answered a change so far. Before it is published all counts are 0."""
    return ChangeReading(change, progress).delivery


def change_clients(*, change: Change, progress: ChangeProgress, answer: Answer) -> frozenset[str]:
    """The ids of the clients that `change_delivery`, or `change_not_in_use`, counts under `answer`."""
    return ChangeReading(change, progress).clients(answer)


def change_not_in_use(*, change: Change, progress: ChangeProgress) -> NotInUse:
    """Which clients have what the change wrote, for 30 s at least, and did not ask for what it needs (truth.md H5)."""
    return ChangeReading(change, progress).not_in_use


def change_convergence(*, change: Change, progress: ChangeProgress) -> Convergence | None:
    """How the change spread among the clients that were connected when it was published; None where it is not published
    or nothing is kept of that time.
    """
    return ChangeReading(change, progress).convergence()


def changes_unsettled(*, public_ids: Sequence[str]) -> frozenset[str]:
    """The ids among `public_ids` of those changes that clients may still answer."""
    return frozenset(public_id for public_id in public_ids if not _delivered(public_id).settled)


def changes_undecided(*, public_ids: Sequence[str]) -> frozenset[str]:
    """The ids among `public_ids` of those changes that no client has refused and that clients may still answer. Whoever
    waits for a verdict need not wait longer once a client has refused.
    """
    found = {public_id: _delivered(public_id) for public_id in public_ids}
    return frozenset(public_id for public_id, each in found.items() if not each.settled and not each.nacked)


def _delivered(public_id: str) -> Delivery:
    progress = change_progress(public_id=public_id)
    if progress.state is not ChangeState.PUBLISHED:
        return Delivery(settled=progress.state.final)
    return change_delivery(change=change_get(public_id=public_id), progress=progress)


def _settled(count: Mapping[Reaction, int], clients: int, age: timedelta) -> bool:
    if age >= SETTLED_AFTER:
        return True
    open_answers = count.get(Reaction.WAITING, 0) + count.get(Reaction.EXPECTED, 0)
    # With nobody there yet, somebody may be about to be seen.
    return open_answers == 0 and (clients > 0 or age >= EXPECTED_FOR)


def _refusing(change: Change, written: Sequence[tuple[str, str, int]]) -> set[str]:
    """The ids of the clients that refused a revision of this change, or a response in which such a revision was one of
    several suspects.
    """
    named = {(word, name, number) for word, name, number in written}
    ours = Q(incident__name="", incident__change=str(change.public_id))
    rows = IncidentClient.objects.filter(
        ours | Q(incident__name__in={name for _, name, _ in named}),
        incident__environment=change.environment,
        incident__cause=IncidentCause.NACK.value,
    ).values_list("client", "incident__type", "incident__name", "revision")
    return {client for client, word, name, number in rows if not name or (word, name, number) in named}
