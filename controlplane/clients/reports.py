"""Answers what data planes say of themselves, and where that differs from what Parley believes. Values, never rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count

from controlplane.clients.comparing import SENTENCES, DifferenceKind
from controlplane.clients.models import Report, SaidDifference
from xdscore.said import SaidSource

_OTHER: Final = frozenset({DifferenceKind.OTHER_CONTENT, DifferenceKind.BEHIND})


@dataclass(frozen=True, slots=True)
class ReportView:
    """How a client's own word compared, and when. Of `compared` names, `by_presence` had nothing but their presence to
    compare; `unsure` others were not compared, because Parley itself was not sure of them.
    """

    at: datetime
    source: SaidSource
    by: str
    compared: int
    differing: int
    by_presence: int
    unsure: int

    @property
    def agreeing(self) -> int:
        """How many names are as Parley believes."""
        return self.compared - self.differing


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """A name on which client and Parley differ; since when, and when it was seen to last.

    `state` is empty where the client does not have the name; `error` is in its words. A revision is 0, a version empty,
    where it is not known.
    """

    type: str
    name: str
    kind: DifferenceKind
    state: str
    held: bool
    said_version: str
    said_revision: int
    believed_version: str
    believed_revision: int
    error: str
    since: datetime
    seen_at: datetime

    @property
    def sentence(self) -> str:
        """How they differ, in words."""
        said = _called(self.said_revision, self.said_version)
        if not said and self.held:
            # Hosts are compared where no content shows, and they differ.
            said = "other hosts" if self.kind in _OTHER else "something that does not show"
        believed = _called(self.believed_revision, self.believed_version)
        return SENTENCES[self.kind].format(said=said or "nothing", believed=believed or "nothing")


@dataclass(frozen=True, slots=True)
class ClientWord:
    """What a client says of itself: the newest report, those before it, newest first, and the differences by type and
    name: some hundred of them at most.
    """

    report: ReportView
    earlier: tuple[ReportView, ...]
    differences: tuple[DifferenceView, ...]


def client_word(*, public_id: str) -> ClientWord | None:
    """What this client says of itself; None where nobody ever reported it, or nothing of it is kept."""
    reports = tuple(
        ReportView(
            at=row.at,
            source=SaidSource(row.source),
            by=row.by,
            compared=row.compared,
            differing=row.differing,
            by_presence=row.by_presence,
            unsure=row.unsure,
        )
        for row in Report.objects.filter(client=public_id).order_by("-id")
    )
    if not reports:
        return None
    rows = SaidDifference.objects.filter(client=public_id).order_by("type", "name")
    return ClientWord(reports[0], reports[1:], tuple(map(_view, rows)))


def differing_counts(*, clients: Collection[str]) -> Mapping[str, int]:
    """By client id, on how many names the own words of these clients differ; those that agree are left out."""
    rows = SaidDifference.objects.filter(client__in=list(clients)).values_list("client_id")
    return dict(rows.annotate(count=Count("pk")))


def _view(row: SaidDifference) -> DifferenceView:
    return DifferenceView(
        type=row.type,
        name=row.name,
        kind=DifferenceKind(row.kind),
        state=row.state,
        held=row.held,
        said_version=row.said_version,
        said_revision=row.said_revision,
        believed_version=row.believed_version,
        believed_revision=row.believed_revision,
        error=row.error,
        since=row.since,
        seen_at=row.seen_at,
    )


def _called(revision: int, version: str) -> str:
    """How people call a content; empty where nothing is known of it."""
    if revision:
        return f"r{revision}"
    return f"version {version}, which is of no revision known here" if version else ""
