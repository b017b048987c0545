"""One change: who wrote what, and what became of it."""

from dataclasses import dataclass
from typing import Final, TypedDict
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from controlplane.access.choices import EditSubject
from controlplane.access.selectors import edits_of_change, secret_findings
from controlplane.access.steps import access_text
from controlplane.accounts.principal import Role
from controlplane.builder.selectors import ChangeProgress, ChangeState, HeldBackName, progress_of_change
from controlplane.catalog.choices import ChangeKind, StagedChangeState
from controlplane.catalog.contents import contents_of_change
from controlplane.catalog.differences import ResourceDifference
from controlplane.catalog.edits import change_edits
from controlplane.catalog.guarding import loss_from_json
from controlplane.catalog.manifests import manifest_of
from controlplane.catalog.marking import labels_of
from controlplane.catalog.models import Change
from controlplane.catalog.rollbacks import undone_by, undone_of
from controlplane.catalog.staging import StagedChangeView
from controlplane.catalog.undoing import Way, owners_of, wrote_both
from controlplane.changesets.selectors import change_and_set
from controlplane.changesets.values import SetPublished
from controlplane.clients.browsing import Standing, standing_counts
from controlplane.clients.in_use import NotInUse, Unused
from controlplane.common.errors import Conflict, ControlPlaneError, NotFound
from controlplane.console.charts import convergence_chart
from controlplane.console.comments import comments_shown
from controlplane.console.live import shared
from controlplane.console.losses import Lost
from controlplane.console.pages import Page
from controlplane.console.posted import MAX_REASON_CHARS, reason_of
from controlplane.console.resources import resource_url
from controlplane.console.states import look_of_change, look_of_resource
from controlplane.discussion.values import About, Subject
from controlplane.incidents.selectors import IncidentValue, counted_in, incidents_of_change
from controlplane.incidents.settling import ChangeReading, Delivery
from controlplane.incidents.values import IncidentCause
from controlplane.rollouts.selectors import rollout_brief, stops_of_changes
from controlplane.rollouts.values import ChangeStop, RolloutBrief
from controlplane.snapshots.history import epoch_before
from controlplane.status.changes import Outcome, Progress
from controlplane.status.selectors import change_statuses, progress_of, statuses_named
from controlplane.undo.rights import may_undo, undo_require
from controlplane.undo.services import change_undo, undo_way

_MAX_DIFFS: Final = 50
_MAX_FINDINGS: Final = 200
_MAX_UNDONE: Final = 20
_MAX_STEPS: Final = 100
_MAX_UNUSED: Final = 5
_MAX_MARKED: Final = 100
# Rules and groups, and the default effect.
_DECIDING: Final = (ChangeKind.ACCESS.value, ChangeKind.POLICY.value)


@dataclass(frozen=True, slots=True)
class Held:
    """A name that the change wrote and that is not served as it wrote it, while no later change wrote it. `look`: the
    key in `states.LOOKS` of the badge that shows how the name stands.
    """

    held: HeldBackName
    look: str


@dataclass(frozen=True, slots=True)
class Became:
    """How far a change has come, for its page and for the part of the page that is refreshed.

    `not_in_use`: who acknowledged it and does not use it yet; `unused`: the resources by which most do not, each with
        the URL of the clients that ask for it.
    `undone_by`: the rollback or undo that took it back; None while it is in force.
    """

    progress: ChangeProgress
    delivery: Delivery
    not_in_use: NotInUse
    unused: tuple[tuple[Unused, str], ...]
    state: Progress
    status: Outcome | Progress
    held: tuple[Held, ...]
    undone_by: Change | None

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the change stands."""
        return look_of_change(self.status)

    @property
    def decided(self) -> bool:
        """Whether nothing more will be learnt of the change: its build is over, and each client that was sent it has
        answered or been silent for too long.
        """
        return self.progress.state.final and (self.progress.state is not ChangeState.PUBLISHED or self.delivery.settled)

    @property
    def refreshes(self) -> bool:
        """Whether the page goes on asking: until it is decided, and known who does not use what it took."""
        return not self.decided or self.not_in_use.waits

    @property
    def open_answers(self) -> int:
        """How many clients were sent the change and have neither answered nor been silent for too long."""
        return max(0, self.delivery.clients - self.delivery.acked - self.delivery.nacked - self.delivery.silent)

    @property
    def shares(self) -> list[tuple[str, float, float]]:
        """The coloured parts of the progress bar: (tone, start, width), where start and width are percent of the
        bar.
        """
        total = self.delivery.clients or 1
        parts = (("good", self.delivery.acked), ("bad", self.delivery.nacked), ("warn", self.delivery.silent))
        found, start = [], 0.0
        for tone, count in parts:
            width = 100 * count / total
            found.append((tone, round(start, 2), round(width, 2)))
            start += width
        return found


@dataclass(frozen=True, slots=True)
class AccessLine:
    """An access rule or client group that a change edited. `text`: the unified difference between before and after."""

    noun: str
    number: int
    action: str
    text: str

    @property
    def caption(self) -> str:
        """What the difference is called for people who hear the page."""
        return f"What it changed of {self.noun} {self.number}"


class _Live(TypedDict):
    """The template values of a change's page that may differ each time the page refreshes.

    `incidents`: incidents of clients that refuse something of it.
    `lost`: what clients lose by it; None where that is nothing, or ended before there was an incident.
    `denied`: of a change of access, how many connected clients ask for something that they may not read now.
    `rollout`: the rollout that has something of it, or had it last; None where none did.
    `waits`: whether something of it waits for a rollout.
    `stop`: what a rollout took back of it; None where that is nothing.
    """

    became: Became
    incidents: tuple[IncidentValue, ...]
    lost: Lost | None
    denied: int
    rollout: RolloutBrief | None
    waits: bool
    stop: ChangeStop | None


class ChangePage(Page):
    """The page of one change: what it wrote, how far the builder and the clients have come with it, and how to undo
    it.
    """

    template = "changes/detail.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest, change_id: UUID) -> HttpResponse:
        """The page of the change; with `?part=progress`, only the part that is refreshed while the page is open."""
        change, change_set = _read(self, change_id)
        if request.GET.get("part") == "progress":
            live = shared(f"change/{change_id}", lambda: _live(_reading(change)))
            return self.part("changes/progress.html", {**live, "change": change, "environment": self.here})
        reading = _reading(change)
        live = _live(reading)
        progress = live["became"].progress
        key = change.environment.key
        wrote = change_edits(change=change, limit=_MAX_DIFFS, findings=_MAX_FINDINGS)
        differences = [
            ResourceDifference(
                name,
                manifest_of(before) if before is not None else None,
                manifest_of(after) if after is not None else None,
            )
            for name, before, after in (contents_of_change(change=change, limit=_MAX_DIFFS) if wrote.edits else ())
        ]
        # A rollback makes resources what they were and leaves access rules and policies alone (decisions U4).
        epoch = progress.epoch if change.kind == ChangeKind.RESOURCES.value else None
        before = epoch_before(environment_key=key, epoch=epoch) if epoch is not None else None
        undone, undone_count = undone_of(change=change, limit=_MAX_UNDONE)
        spread = reading.convergence()
        return self.page(
            {
                **live,
                "chart": convergence_chart(spread) if spread is not None and spread.of else None,
                "change": change,
                "change_set": change_set,
                "edits": [
                    (edit, difference, resource_url(key, edit.type, edit.name))
                    for edit, difference in zip(wrote.edits, differences, strict=True)
                ],
                "edit_count": wrote.count,
                "access_edits": _access_edits(change),
                **_marked(change),
                "findings": (*wrote.findings, *secret_findings(environment_key=key, edits=wrote.edits)),
                "rollback_url": f"{reverse('rollback', args=[key])}?to={before}" if before is not None else "",
                "before": before,
                "just_before": before is not None and before + 1 == epoch,
                "undone_by": live["became"].undone_by,
                "may_undo": may_undo(self.principal, change),
                "undone": undone,
                "undone_count": undone_count,
                "permalink": request.build_absolute_uri(request.path),
                **comments_shown(self, Subject(About.CHANGE, key, str(change.public_id), change.pk)),
            }
        )


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """A resource whose owner or labels a change moved, with the URL of its page. `labels`: what was put on and taken
    off, in words; `owner`: before and after; each None where that stayed.
    """

    type: str
    name: str
    url: str
    labels: str | None = None
    owner: tuple[str, str] | None = None


def _marked(change: Change) -> dict[str, object]:
    """Whose owners and labels a change moved, for its page."""
    labels = {moved.key: moved.words for moved in labels_of(change.undo)}
    owners = {(word, name): (was, became) for word, name, was, became in owners_of(change.undo) if was != became}
    keys = sorted({*labels, *owners})
    lines = [
        MarkedLine(*key, resource_url(change.environment.key, *key), labels.get(key), owners.get(key))
        for key in keys[:_MAX_MARKED]
    ]
    return {"marked": lines, "marked_count": len(keys)}


class ChangeUndoPage(Page):
    """The page to undo a change: what undoing does or what stands in its way, and a form for the reason."""

    template = "changes/undo.html"
    proposes = False
    needs = {"GET": None, "POST": None}

    def get(self, request: HttpRequest, change_id: UUID, error: ControlPlaneError | None = None) -> HttpResponse:
        """The form to undo the change; with `error`, what went wrong when it was sent."""
        change = _visible(self, change_id)
        undo_require(self.principal, change)
        back = undone_by(environment_key=self.here.key, changes=[change]).get(change.generation)
        way = Way()
        try:
            if back is None:
                way = undo_way(change=change)
        except Conflict as never:
            error = never
        context: dict[str, object] = {
            "change": change,
            "undone_by": back,
            "steps": way.steps[:_MAX_STEPS],
            "step_count": len(way.steps),
            "obstacles": way.obstacles[:_MAX_FINDINGS],
            "since": way.since[:_MAX_UNDONE],
            "possible": back is None and way.steps and not way.obstacles,
            "reason": request.POST.get("reason", "") if error is not None else "",
            "max_reason": MAX_REASON_CHARS,
            "error": error,
        }
        return self.page(context, status=error.status if error is not None and request.method == "POST" else 200)

    def post(self, request: HttpRequest, change_id: UUID) -> HttpResponse:
        """Undo the change, then redirect to the new change that did so."""
        change = _visible(self, change_id)
        undo_require(self.principal, change)
        try:
            undone = change_undo(
                public_id=str(change_id),
                reason=reason_of(request),
                actor=self.principal,
                request_id=self.request_id,
                consent=self.consent,
            )
        except ControlPlaneError as error:
            return self.get(request, change_id, error)
        if undone.already:
            messages.info(request, f"Change {str(change_id)[:8]} had been taken back already, by this change.")
        return redirect("change", undone.change)


def _visible(page: Page, change_id: UUID) -> Change:
    """The change that `_read` finds."""
    return _read(page, change_id)[0]


def _read(page: Page, change_id: UUID) -> tuple[Change, SetPublished | None]:
    """The change with this id, and the change set as which it was proposed; sets the page's environment to the
    change's. Raises NotFound, with one text, where there is no such change and where the user may not see it.
    """
    change, change_set = change_and_set(public_id=str(change_id))
    if not page.principal.may(Role.VIEWER, change.environment.key):
        raise NotFound(f"There is no change '{change_id}'.")
    page.enter(change.environment.key)
    return change, change_set


def _access_edits(change: Change) -> list[AccessLine]:
    """The access rules and client groups that the change edited."""
    if change.kind != ChangeKind.ACCESS.value and not wrote_both(change.undo):
        return []
    done = edits_of_change(change_id=str(change.public_id), limit=_MAX_DIFFS)
    return [
        AccessLine(
            "rule" if each.subject is EditSubject.RULE else "client group",
            each.subject_id,
            each.action.value,
            access_text(f"{each.subject.value}/{each.subject_id}", each.before, each.after),
        )
        for each in done
    ]


def _reading(change: Change) -> ChangeReading:
    return ChangeReading(change, progress_of_change(change=change))


def _became(reading: ChangeReading, incidents: tuple[IncidentValue, ...]) -> Became:
    change, progress, delivery = reading.change, reading.progress, reading.delivery
    public_id, key = str(change.public_id), change.environment.key
    state, undone = progress_of(progress, delivery), undone_by(environment_key=key, changes=[change])
    refused, lost = counted_in(incidents, change_id=public_id)
    statuses = change_statuses(environment_key=key, changes={change: state}, refused=refused, lost=lost, undone=undone)
    names = {(key, (each.type, each.name)): each for each in progress.held}
    words = statuses_named(names=names.keys()) if names else {}
    held = tuple(Held(each, look_of_resource(words[name])) for name, each in names.items() if name in words)
    found = reading.not_in_use
    unused = tuple(
        (each, f"{resource_url(key, each.type, each.name)}&tab=clients") for each in found.resources[:_MAX_UNUSED]
    )
    return Became(progress, delivery, found, unused, state, statuses[public_id], held, undone.get(change.generation))


def _live(reading: ChangeReading) -> _Live:
    change, progress = reading.change, reading.progress
    public_id = str(change.public_id)
    incidents = incidents_of_change(change_id=public_id)
    lost = _lost(change, progress, incidents)
    became = _became(reading, incidents)
    denied = 0
    if change.kind in _DECIDING:
        key = change.environment.key
        denied = standing_counts(environment_keys=[key])[key][Standing.DENIED]
    refusals = tuple(each for each in incidents if each.cause is IncidentCause.NACK)
    rollout, waits, stop = _rollout_of(public_id, progress.staged)
    return _Live(became=became, incidents=refusals, lost=lost, denied=denied, rollout=rollout, waits=waits, stop=stop)


def _rollout_of(public_id: str, staged: StagedChangeView | None) -> tuple[RolloutBrief | None, bool, ChangeStop | None]:
    """The rollout that has, or had, something of a change; whether something of it waits for one; and what was taken
    back.
    """
    if staged is None:
        return None, False, None
    stop = stops_of_changes(change_ids=[public_id]).get(public_id)
    last = staged.rollout or (stop.rollout if stop is not None else "")
    rollout = rollout_brief(public_id=last) if last else None
    return rollout, staged.state is StagedChangeState.WAITING, stop


def _lost(change: Change, progress: ChangeProgress, incidents: tuple[IncidentValue, ...]) -> Lost | None:
    incident = next((each for each in incidents if each.cause is IncidentCause.LOSS), None)
    # What is published without an incident was over by then.
    if change.loss is None or (incident is None and progress.state is not ChangeState.SAVED):
        return None
    return Lost(loss_from_json(change.loss), incident)


urlpatterns = [
    path("changes/<uuid:change_id>", ChangePage.as_view(), name="change"),
    path("changes/<uuid:change_id>/undo", ChangeUndoPage.as_view(), name="change-undo"),
]
