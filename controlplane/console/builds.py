"""The runs of the builder, stage by stage."""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from django.db.models import QuerySet
from django.urls import path

from controlplane.builder.models import Build, BuildOutcome
from controlplane.builder.selectors import build_list
from controlplane.catalog.change_log import changes_of_generations
from controlplane.catalog.filtering import ordered
from controlplane.console.lists import FINDINGS, found_or_not
from controlplane.console.places import Place, Section
from controlplane.console.row_lists import RowsPage
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, Order, options
from controlplane.listing.tables import Column

_MAX_WAITING: Final = 1_000  # changes that no build has covered yet
_ORDERS: Final = {"ended": ("pk",), "outcome": ("outcome", "pk"), "held": ("held_count", "pk")}


class BuildsPage(RowsPage):
    """The page with the runs of the builder, and what is served now."""

    template = "builds/list.html"
    frame = Frame(
        "builds",
        "builds",
        "builds",
        (
            Filter("outcome", "Outcome", Kind.CHOICE, options([each.value for each in BuildOutcome])),
            Filter("findings", "Findings", Kind.CHOICE, FINDINGS),
            SINCE,
            UNTIL,
        ),
        (
            Order("ended", "Ended", falls=True),
            Order("outcome", "Outcome"),
            Order("held", "Not as written", falls=True),
        ),
    )
    columns: ClassVar[Sequence[Column[Build]]] = (
        Column("outcome", lambda each: each.outcome),
        Column("detail", lambda each: each.detail),
        Column("ended_at", lambda each: each.at),
        Column("from_generation", lambda each: each.from_generation),
        Column("to_generation", lambda each: each.to_generation),
        Column("snapshot", lambda each: each.epoch),
        Column("not_as_written", lambda each: each.held_count),
        Column("findings", lambda each: json.dumps(each.finding_counts)),
        Column("stage_ms", lambda each: json.dumps(each.stage_ms)),
    )

    def rows(self, asked: Asked) -> QuerySet[Build]:
        """The builds that fit the filters; without an order, newest first."""
        rows = build_list(environment_key=self.here.key)
        if outcome := asked.text("outcome"):
            rows = rows.filter(outcome=outcome)
        if (found := found_or_not(asked)) is not None:
            rows = rows.exclude(finding_counts={}) if found else rows.filter(finding_counts={})
        if asked.since is not None:
            rows = rows.filter(at__gte=asked.since)
        if asked.until is not None:
            rows = rows.filter(at__lte=asked.until)
        return rows.order_by(*ordered(_ORDERS[asked.sort], falls=asked.falls)) if asked.sort else rows

    def line(self, row: Build) -> Build:
        """A build as the list shows it."""
        return row

    def beside(self, asked: Asked) -> Mapping[str, object]:  # noqa: ARG002 - of every list
        """The changes that wait for a build."""
        waiting = changes_of_generations(
            environment_key=self.here.key,
            after=self.here.built_generation,
            up_to=self.here.generation,
            limit=_MAX_WAITING,
        )
        return {"waiting": waiting, "oldest": waiting[-1] if waiting else None}


urlpatterns = [
    path("e/<str:environment_key>/builds", BuildsPage.as_view(), name="builds"),
]
PLACES = (Place(Section.CONFIGURATION, 50, "Builds", "hammer", "builds"),)
