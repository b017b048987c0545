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
    """The result and time of comparing a client's report with what Parley believes. Of `compared` names, `by_presence`
    had nothing but their presence to compare; `unsure` others were not compared, because Parley itself was not sure of
    them.
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
        """The number of names on which the report and Parley agree."""
        return self.compared - self.differing


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """A name on which the client's report and Parley differ; since when, and when that was last seen.

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
        """A sentence that says how the report and Parley differ on this name."""
        said = _called(self.said_revision, self.said_version)
        if not said and self.held:
            # Hosts are compared where no content shows, and they differ.
            said = "other hosts" if self.kind in _OTHER else "something that does not show"
        believed = _called(self.believed_revision, self.believed_version)
        return SENTENCES[self.kind].format(said=said or "nothing", believed=believed or "nothing")


@dataclass(frozen=True, slots=True)
class ClientWord:
    """The reports of a client: the newest, those before it, newest first, and the differences of the newest by type and
    name: some hundred of them at most.
    """

    report: ReportView
    earlier: tuple[ReportView, ...]
    differences: tuple[DifferenceView, ...]


def client_word(*, public_id: str) -> ClientWord | None:
    """The reports of this client; None where nobody ever sent one, or none is kept."""
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
    """The number of names on which each of these clients' reports differs, by client id; those that agree are left
    out.
    """
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
    """The words for a content by its revision or version; empty where nothing is known of it."""
    if revision:
        return f"r{revision}"
    return f"version {version}, which is of no revision known here" if version else ""
