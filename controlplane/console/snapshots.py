"""Snapshots: what was served when, how two of them differ, and the way back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.builder.models import Build
from controlplane.builder.selectors import builds_of_epochs, causes_of_builds
from controlplane.catalog.differences import states_differ
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import EnvironmentState
from controlplane.catalog.values import finding_from_json
from controlplane.clients.browsing import Standing, standing_counts
from controlplane.common.errors import ControlPlaneError, InputInvalid, NotFound
from controlplane.console.comparing import LIVE, epoch_of, states_of
from controlplane.console.lists import ListPage, ListShown
from controlplane.console.pages import Page
from controlplane.console.paging import Paged, page_number, paged
from controlplane.console.places import Place, Section
from controlplane.console.states import look_of_environment
from controlplane.listing.frames import SINCE, UNTIL, Asked, Frame, Order
from controlplane.listing.tables import Column
from controlplane.snapshots.history import epoch_before
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.rollback import environment_rollback, rollback_plan
from controlplane.snapshots.selectors import snapshot_list
from controlplane.status.environments import EnvironmentStatus
from controlplane.status.selectors import environment_statuses
from xdscore.findings import Finding

_DIFFS: Final = 25  # on a page: each is written as YAML twice
_MAX_REASON: Final = 400
_SIZE: Final = 25
_OF_A_FILE: Final = 100  # of how many at once a file reads what made them


@dataclass(frozen=True, slots=True)
class SnapshotLine:
    """A snapshot in the list.

    `build`: the build that made it; None where that is no longer stored.
    `causes`: the changes that it was built for, newest first.
    `current`: it is the one that is served. Only then are there `status` (how the environment stands), `refused` (how
    many clients refuse something of it) and `denied` (how many ask for something that they may not read).
    """

    row: SnapshotRow
    build: Build | None
    current: bool
    causes: tuple[Change, ...] = ()
    status: EnvironmentStatus | None = None
    refused: int = 0
    denied: int = 0

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the environment stands; empty for a snapshot that is
        not served.
        """
        return look_of_environment(self.status.status) if self.status is not None else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The first findings of the snapshot's build."""
        return tuple(finding_from_json(each) for each in self.build.findings) if self.build is not None else ()

    @property
    def finding_count(self) -> int:
        """The number of all findings of the snapshot's build."""
        return sum(self.build.finding_counts.values()) if self.build is not None else 0

    @property
    def resources(self) -> int:
        """The number of resources that the snapshot serves."""
        return sum(value for value in self.row.counts.values() if isinstance(value, int))


class SnapshotsPage(ListPage):
    """The page with an environment's stored snapshots, newest first; any two can be compared."""

    template = "snapshots/list.html"
    frame = Frame("snapshots", "snapshots", "snapshots", (SINCE, UNTIL), (Order("epoch", "Snapshot", falls=True),))
    columns: ClassVar[Sequence[Column[SnapshotLine]]] = (
        Column("snapshot", lambda line: line.row.epoch),
        Column("published_at", lambda line: line.row.at),
        Column("changes", lambda line: " ".join(str(change.public_id) for change in line.causes)),
        Column("resources", lambda line: line.resources),
        Column("not_as_written", lambda line: line.build.held_count if line.build is not None else None),
        Column("findings", lambda line: line.finding_count if line.build is not None else None),
    )

    def shown(self, asked: Asked) -> ListShown:
        """One page of the environment's snapshots."""
        page = paged(self.request, self._rows(asked), lambda row: row, size=_SIZE)
        return ListShown({"page": page.showing(self._lines(page.items))})

    def lines(self, asked: Asked, limit: int) -> Iterator[SnapshotLine]:
        """The first snapshots that fit the filters."""
        rows = list(self._rows(asked)[:limit])
        for start in range(0, len(rows), _OF_A_FILE):
            yield from self._lines(rows[start : start + _OF_A_FILE])

    def _rows(self, asked: Asked) -> QuerySet[SnapshotRow]:
        rows = snapshot_list(environment_key=self.here.key)
        if asked.since is not None:
            rows = rows.filter(at__gte=asked.since)
        if asked.until is not None:
            rows = rows.filter(at__lte=asked.until)
        return rows.order_by("epoch") if asked.sort and not asked.falls else rows

    def _lines(self, rows: Sequence[SnapshotRow]) -> list[SnapshotLine]:
        builds = builds_of_epochs(environment_key=self.here.key, epochs=[row.epoch for row in rows])
        causes = causes_of_builds(environment_key=self.here.key, builds=builds)
        newest = self.here.epoch
        return [
            SnapshotLine(
                row,
                builds.get(row.epoch),
                row.epoch == newest,
                causes.get(row.epoch, ()),
                *(_now(self.here) if row.epoch == newest else ()),
            )
            for row in rows
        ]


class SnapshotPage(Page):
    """The page of one snapshot: what made it, and how much it serves of each type."""

    template = "snapshots/detail.html"

    def get(self, request: HttpRequest, environment_key: str, epoch: int) -> HttpResponse:  # noqa: ARG002 - Django's
        """The page of the snapshot with this epoch, which never changes."""
        row = snapshot_list(environment_key=environment_key).filter(epoch=min(epoch, 2**63 - 1)).first()
        if row is None:
            raise NotFound(f"There is no snapshot {epoch} of '{environment_key}': not yet, or not any more.")
        builds = builds_of_epochs(environment_key=environment_key, epochs=[epoch])
        causes = causes_of_builds(environment_key=environment_key, builds=builds).get(epoch, ())
        current = epoch == self.here.epoch
        line = SnapshotLine(row, builds.get(epoch), current, causes, *(_now(self.here) if current else ()))
        return self.page({"line": line, "before": epoch_before(environment_key=environment_key, epoch=epoch)})


class RollbackPage(Page):
    """The page to roll an environment back to an earlier snapshot: what that would change, and a form for the reason
    and for whether the environment is on hold afterwards.
    """

    template = "snapshots/rollback.html"
    needs = {"GET": Role.OPERATOR, "POST": Role.OPERATOR}
    why = "reason"

    def get(self, request: HttpRequest, environment_key: str, error: ControlPlaneError | None = None) -> HttpResponse:
        """The form and what rolling back would change; with `?part=loss`, only what clients would lose by it."""
        epoch = epoch_of(request.GET.get("to", ""))
        if request.GET.get("part") == "loss":
            return self.foreseen(lambda: rollback_plan(environment_key=environment_key, to_epoch=epoch).loss)
        now, then = states_of(environment_key, LIVE, str(epoch))
        number = page_number(request)
        count, found = states_differ(
            now, then, environment_key=environment_key, limit=_DIFFS, offset=(number - 1) * _DIFFS
        )
        page = Paged(found, number, count, _DIFFS)
        context = {"to": epoch, "page": page, "error": error}
        return self.page(context, status=error.status if error else 200)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Roll back, then redirect to the change that did so."""
        reason = request.POST.get("reason", "").strip()
        try:
            if not reason or len(reason) > _MAX_REASON:
                raise InputInvalid(f"A rollback says why, in at most {_MAX_REASON} characters. Nothing was changed.")
            made = environment_rollback(
                environment_key=environment_key,
                to_epoch=epoch_of(request.GET.get("to", "")),
                reason=reason,
                hold=request.POST.get("hold") == "1",
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
            )
        except ControlPlaneError as error:
            return self.get(request, environment_key, error)
        return redirect("change", made.change_id) if made.changed else redirect("snapshots", environment_key)


def _now(environment: EnvironmentState) -> tuple[EnvironmentStatus, int, int]:
    """How the environment stands, how many clients refuse something that it serves, and how many ask for something that
    they may not read.
    """
    status = environment_statuses(environments=[environment])[environment.key]
    counts = standing_counts(environment_keys=[environment.key])[environment.key]
    return status, counts[Standing.REFUSING], counts[Standing.DENIED]


urlpatterns = [
    path("e/<str:environment_key>/snapshots", SnapshotsPage.as_view(), name="snapshots"),
    path("e/<str:environment_key>/snapshots/<int:epoch>", SnapshotPage.as_view(), name="snapshot"),
    path("e/<str:environment_key>/rollback", RollbackPage.as_view(), name="rollback"),
]
PLACES = (
    Place(
        Section.CONFIGURATION,
        40,
        "Snapshots",
        "layers-intersect",
        "snapshots",
        also=("snapshot", "compare", "rollback"),
    ),
)
