"""Reads at once what is asked of each of several changes of an environment, or of one (`settling`)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from django.db.models import Q

from controlplane.catalog.models import Change, Environment, Revision
from controlplane.catalog.written import RevisionWritten, revisions_written
from controlplane.clients.clock import database_now
from controlplane.clients.delivery import FleetRead
from controlplane.clients.serving import Behind, replicas_behind
from controlplane.incidents.models import IncidentClient
from controlplane.incidents.values import IncidentCause
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.selectors import snapshot_list


class _Refusal(NamedTuple):
    """That a client refused a revision (the word of its type, its name and number) that `change` sent. Where there were
    several suspects the name is empty.
    """

    client: str
    change: str
    revision: tuple[str, str, int]


class ChangesRead:
    """What these changes of an environment wrote, who refused it, the snapshots that have it, and how the clients of
    the environment stand. Each is read when it is first asked for, for all of them; it is of that time.
    """

    def __init__(self, environment: Environment, changes: Sequence[Change]) -> None:
        self._environment = environment
        self._changes = changes
        self._snapshots: dict[int, SnapshotRow | None] = {}
        self._behind: dict[int, tuple[Behind, ...]] = {}

    @cached_property
    def now(self) -> datetime:
        """The time, by the clock of the database, at which clients are asked about."""
        return database_now()

    @cached_property
    def fleet(self) -> FleetRead:
        """How clients stand."""
        return FleetRead(self._environment.key, self.now)

    @cached_property
    def revisions(self) -> Mapping[int, tuple[RevisionWritten, ...]]:
        """What each of the changes wrote, by row id."""
        return revisions_written(changes=[each.pk for each in self._changes])

    def snapshot(self, epoch: int) -> SnapshotRow | None:
        """The snapshot of this epoch; None where it is not stored any more."""
        if epoch not in self._snapshots:
            kept = snapshot_list(environment_key=self._environment.key)
            self._snapshots[epoch] = kept.filter(epoch=epoch).first()
        return self._snapshots[epoch]

    def behind(self, row: SnapshotRow) -> tuple[Behind, ...]:
        """The ADS processes that do not serve this snapshot yet."""
        if row.epoch not in self._behind:
            self._behind[row.epoch] = replicas_behind(
                environment_key=self._environment.key, lineage=str(row.lineage), epoch=row.epoch
            )
        return self._behind[row.epoch]

    def refusing(self, change: Change) -> frozenset[str]:
        """The ids of the clients that refused a revision of this change, or a response in which such a revision was one
        of several suspects.
        """
        written = {(each.type, each.name, each.number) for each in self.revisions.get(change.pk, ())}
        return frozenset(
            each.client
            for each in self._refusals
            if (each.revision in written if each.revision[1] else each.change == str(change.public_id))
        )

    @cached_property
    def _refusals(self) -> tuple[_Refusal, ...]:
        """Who refused something that has the name of what one of the changes wrote, or that one of them sent."""
        # Not given as a list: together they may have written more names than a statement takes parameters.
        names = Revision.objects.filter(change__in=[each.pk for each in self._changes]).values("resource__name")
        sent = Q(incident__name="", incident__change__in=[str(each.public_id) for each in self._changes])
        rows = IncidentClient.objects.filter(
            sent | Q(incident__name__in=names),
            incident__environment=self._environment,
            incident__cause=IncidentCause.NACK.value,
        ).values_list("client", "incident__change", "incident__type", "incident__name", "revision")
        return tuple(_Refusal(client, change, (word, name, number)) for client, change, word, name, number in rows)
