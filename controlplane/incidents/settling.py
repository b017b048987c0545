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

from controlplane.builder.selectors import ChangeProgress, ChangeState, progress_of_change
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import change_get
from controlplane.catalog.written import RevisionWritten
from controlplane.clients.delivery import EXPECTED_FOR, Reaction, Written
from controlplane.clients.in_use import NotInUse
from controlplane.clients.serving import Behind
from controlplane.clients.spreading import spread
from controlplane.clients.uses import Uses, not_in_use
from controlplane.history.convergence import Convergence, convergence
from controlplane.incidents.changes_read import ChangesRead
from controlplane.snapshots.models import SnapshotRow

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
    change has come; `shared`: what was read of it and other changes of its environment together.
    """

    def __init__(self, change: Change, progress: ChangeProgress, shared: ChangesRead | None = None) -> None:
        self.change = change
        self.progress = progress
        self._shared = shared or ChangesRead(change.environment, (change,))

    @cached_property
    def delivery(self) -> Delivery:
        """How clients have answered the change so far. Before it is published all counts are 0."""
        if self.progress.state is not ChangeState.PUBLISHED or self.progress.epoch is None:
            return Delivery()
        row = self._snapshot
        if row is None:
            # Its snapshot is older than what is kept.
            return Delivery(settled=True)
        behind = self._shared.behind(row)
        count = Counter(self._reactions.values())
        clients = len(self._reactions) - count[Reaction.EXPECTED]
        return Delivery(
            clients=clients,
            acked=count[Reaction.ACKED],
            nacked=count[Reaction.NACKED],
            silent=count[Reaction.SILENT],
            settled=not behind and _settled(count, clients, self._shared.now - row.at),
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
        versions = {(each.type, each.name): each.version for each in self._revisions}
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
        return self._shared.snapshot(epoch)

    @property
    def _revisions(self) -> tuple[RevisionWritten, ...]:
        """What the change wrote."""
        return self._shared.revisions.get(self.change.pk, ())

    @cached_property
    def _written(self) -> Mapping[str, Mapping[str, Written]]:
        """What the change wrote, by the word of the type and then by name."""
        written: dict[str, dict[str, Written]] = {}
        for each in self._revisions:
            written.setdefault(each.type, {})[each.name] = Written(each.version, each.later)
        return written

    @cached_property
    def _reactions(self) -> Mapping[str, Reaction]:
        """How far each client has come with the published change, by client id. Clients that ask for what it wrote but
        were not sent it yet are included.
        """
        row = self._snapshot
        if row is None:
            return {}
        found = dict(self._shared.fleet.reactions(written=self._written, since=row.at))
        # Who refused is told apart from its next answer, which may be the ACK of what stands in.
        found.update(dict.fromkeys(self._shared.refusing(self.change), Reaction.NACKED))
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
    change = change_get(public_id=public_id)
    progress = progress_of_change(change=change)
    if progress.state is not ChangeState.PUBLISHED:
        return Delivery(settled=progress.state.final)
    return change_delivery(change=change, progress=progress)


def _settled(count: Mapping[Reaction, int], clients: int, age: timedelta) -> bool:
    if age >= SETTLED_AFTER:
        return True
    open_answers = count.get(Reaction.WAITING, 0) + count.get(Reaction.EXPECTED, 0)
    # With nobody there yet, somebody may be about to be seen.
    return open_answers == 0 and (clients > 0 or age >= EXPECTED_FOR)
