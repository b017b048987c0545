"""Rollouts: what is on its way to the fleet, who has it, what they say, and what somebody decides about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, TypedDict
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.catalog.differences import ResourceDifference, revisions_differ
from controlplane.catalog.json_reading import duration_text
from controlplane.catalog.rights import require
from controlplane.catalog.rollout_settings import MAX_STEPS
from controlplane.common.errors import ControlPlaneError, InputInvalid, NotFound
from controlplane.console.charts import Chart, rollout_chart
from controlplane.console.lists import ListPage, ListShown
from controlplane.console.live import shared
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.console.posted import MAX_REASON_CHARS, reason_of, whole_of
from controlplane.console.resources import resource_url
from controlplane.console.states import look_of_rollout, look_of_rollout_client
from controlplane.incidents.selectors import incident_get, incidents_of_name
from controlplane.listing.frames import SINCE, UNTIL, Asked, Filter, Frame, Kind, options
from controlplane.listing.tables import Column
from controlplane.rollouts.selectors import (
    rollout_environment,
    rollout_verdicts,
    rollout_watch,
    rollouts_of,
)
from controlplane.rollouts.services import (
    rollout_abort,
    rollout_advance,
    rollout_approve,
    rollout_pause,
    rollout_reject,
    rollout_resume,
)
from controlplane.rollouts.values import (
    ClientState,
    Counts,
    KindCounts,
    Outcome,
    RolloutClient,
    RolloutLine,
    RolloutResource,
    RolloutState,
    RolloutView,
    RolloutWatch,
    StepView,
)
from controlplane.rollouts.values import RolloutPage as PageOfRollouts
from xdscore.sides import Side

_CLIENTS: Final = 50
_REFUSING: Final = 10
_DIFFS: Final = 20
_MAX_CURSOR_CHARS: Final = 4_096
# What somebody may do, by the word in the form: the service, and the sentence that says that it is done.
_ACTIONS: Final[Mapping[str, tuple[Callable[..., bool], str]]] = {
    "advance": (rollout_advance, "The rollout goes on."),
    "pause": (rollout_pause, "The rollout is paused: nothing of it goes on or back by itself."),
    "resume": (rollout_resume, "The rollout goes on where it was paused."),
    "approve": (rollout_approve, "The step is approved."),
    "reject": (rollout_reject, "The step is refused: everything is taken back."),
    "abort": (rollout_abort, "The rollout is aborted: what the fleet does not have yet is taken back."),
}

# What is about the step that the page showed: who presses the button twice leaves one step, not two.
_OF_A_STEP: Final = (rollout_advance, rollout_approve)


@dataclass(frozen=True, slots=True)
class Line:
    """A rollout in the list. `look`: the key in `states.LOOKS` of its badge."""

    row: RolloutLine

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the rollout stands."""
        return look_of_rollout(self.row.state, reverted=self.row.reverted)


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step of a rollout, and the key in `states.LOOKS` of its badge. `current`: the rollout is at this step now."""

    step: StepView
    look: str
    current: bool

    @property
    def bake(self) -> str:
        """How long it goes on at least, such as `5m`; empty where that is not at all."""
        return duration_text(self.step.bake_s) if self.step.bake_s else ""


@dataclass(frozen=True, slots=True)
class Answers:
    """What clients of a rollout said, counted."""

    counts: Counts

    @property
    def awaited(self) -> int:
        """How many of those that ask for something that differs have not answered yet."""
        counts = self.counts
        return max(0, counts.exposed - counts.acked - counts.refused - counts.silent - counts.lost)

    @property
    def shares(self) -> list[tuple[str, float, float]]:
        """The coloured parts of a bar: (tone, start, width), where start and width are percent of the bar."""
        counts, found, start = self.counts, [], 0.0
        total = counts.exposed or 1
        parts = (("good", counts.acked), ("bad", counts.refused + counts.lost), ("warn", counts.silent))
        for tone, count in parts:
            width = 100 * count / total
            found.append((tone, round(start, 2), round(width, 2)))
            start += width
        return found


@dataclass(frozen=True, slots=True)
class KindLine(Answers):
    """What clients of one kind said."""

    kind: KindCounts


@dataclass(frozen=True, slots=True)
class ClientLine:
    """A client of a rollout. `look`: the key in `states.LOOKS` of its badge."""

    row: RolloutClient

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows what the client said."""
        return look_of_rollout_client(self.row.state)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was refused, in a client's words. `client`: who said it; None once the rollout is over, when only the
    incident tells. `impact`: how many refused it, in words; `incident`: the incident's id, empty while there is none.
    """

    type: str
    name: str
    url: str
    message: str
    incident: str
    client: RolloutClient | None = None
    impact: str = ""


@dataclass(frozen=True, slots=True)
class ResourceLine:
    """A resource of a rollout, with the two sides compared: `difference` is None beyond the first of them."""

    resource: RolloutResource
    url: str
    difference: ResourceDifference | None


class RolloutsPage(ListPage):
    """The page with the rollouts of an environment, newest first."""

    template = "rollouts/list.html"
    frame = Frame(
        "rollouts",
        "rollouts",
        "rollouts",
        (Filter("state", "State", Kind.CHOICE, options(tuple(RolloutState))), SINCE, UNTIL),
    )
    columns: ClassVar[Sequence[Column[RolloutLine]]] = (
        Column("rollout", lambda row: row.id),
        Column("mode", lambda row: row.mode),
        Column("state", lambda row: row.state.value),
        Column("step", lambda row: row.step),
        Column("steps", lambda row: row.steps),
        Column("resources", lambda row: row.resources),
        Column("taken_back", lambda row: row.reverted),
        Column("waits_for", lambda row: row.waits_for),
        Column("started_at", lambda row: row.started_at),
        Column("ended_at", lambda row: row.ended_at),
    )

    def shown(self, asked: Asked) -> ListShown:
        """One page of rollouts; at most one of them is open."""
        after = self.request.GET.get("after", "")[:_MAX_CURSOR_CHARS]
        page = self._found(asked, after=after, limit=_CLIENTS)
        context = {
            "lines": [Line(each) for each in page.rows],
            "next": page.after,
            "later": bool(after),
            "settings": self.here.policy.rollout,
        }
        return ListShown(context)

    def lines(self, asked: Asked, limit: int) -> Sequence[RolloutLine]:
        """The first rollouts that fit the filters."""
        return self._found(asked, after="", limit=limit).rows

    def _found(self, asked: Asked, *, after: str, limit: int) -> PageOfRollouts:
        return rollouts_of(
            environment_key=self.here.key,
            states=(RolloutState(asked.text("state")),) if asked.text("state") else (),
            since=asked.since,
            until=asked.until,
            after=after,
            limit=limit,
        )


class _Chosen(NamedTuple):
    """Clients of a rollout: on this side, in this state or in any, after those before this cursor."""

    side: Side
    state: ClientState | None
    after: str


class RolloutPage(Page):
    """The page of one rollout: where it is, who has it and why, what they say, what it waits for, and buttons for what
    somebody decides.
    """

    template = "rollouts/detail.html"
    needs = {"GET": None, "POST": None}

    def get(self, request: HttpRequest, rollout_id: UUID, error: ControlPlaneError | None = None) -> HttpResponse:
        """The page; with `?part=now`, `clients` or `chart` only that part, which is refreshed while the page is open.
        With `error`, what went wrong when a form was sent.
        """
        self._enter(rollout_id)
        part = request.GET.get("part", "") if error is None else ""
        if part == "now":
            live = shared(f"rollout/{rollout_id}", lambda: _now(rollout_watch(public_id=str(rollout_id), limit=1)))
            return self.part("rollouts/now.html", {**live, "environment": self.here})
        if part == "chart":
            chart = shared(f"rollout-chart/{rollout_id}", lambda: _chart(rollout_id))
            return self.part("console/parts/chart.html", {"chart": chart})
        if part == "clients":
            chosen = shared(f"rollout-clients/{rollout_id}/{self._chosen()}", lambda: self._watched(rollout_id)[1])
            return self.part("rollouts/clients.html", {**chosen, "environment": self.here})
        watched, chosen = self._watched(rollout_id)
        view, now = watched.rollout, _now(watched)
        context = {
            **now,
            **chosen,
            "chart": _chart(rollout_id),
            "resources": _resources(view, self.here.key),
            "asks_approval": any(each.approve for each in view.steps if each.number >= view.step),
            "reason": request.POST.get("reason", "") if error is not None else "",
            "max_reason": MAX_REASON_CHARS,
            "permalink": request.build_absolute_uri(request.path),
            "error": error,
        }
        return self.page(context, status=error.status if error is not None else 200)

    def post(self, request: HttpRequest, rollout_id: UUID) -> HttpResponse:
        """Do what the button says, then redirect to the page."""
        self._enter(rollout_id)
        require(self.principal, Role.OPERATOR, self.here.key)
        try:
            found = _ACTIONS.get(request.POST.get("action", ""))
            if found is None:
                raise InputInvalid("There is no such action. Nothing was changed.")
            act, done = found
            seen = {"step": whole_of(request.POST, "step", minimum=1, maximum=MAX_STEPS)} if act in _OF_A_STEP else {}
            changed = act(
                public_id=str(rollout_id),
                reason=reason_of(request),
                actor=self.principal,
                request_id=self.request_id,
                **seen,
            )
        except ControlPlaneError as error:
            return self.get(request, rollout_id, error)
        messages.success(request, done if changed else "It was so already, or went on meanwhile. Nothing was changed.")
        return redirect("rollout", rollout_id)

    def _enter(self, rollout_id: UUID) -> None:
        """Set the page's environment to the rollout's. Raises NotFound, with one text, where there is no such rollout
        and where the user may not see it.
        """
        try:
            self.enter(rollout_environment(public_id=str(rollout_id)))
        except NotFound:
            raise NotFound(f"There is no rollout '{rollout_id}'.") from None

    def _chosen(self) -> _Chosen:
        """Which clients the URL asks for."""
        given = self.request.GET
        side = Side.STABLE if given.get("side") == Side.STABLE.value else Side.CANDIDATE
        states = {each.value: each for each in ClientState}
        return _Chosen(side, states.get(given.get("state", "")), given.get("after", "")[:_MAX_CURSOR_CHARS])

    def _watched(self, rollout_id: UUID) -> tuple[RolloutWatch, dict[str, object]]:
        """What is known of the rollout now, and the template values of the table of clients that is asked for."""
        side, state, after = self._chosen()
        watched = rollout_watch(
            public_id=str(rollout_id), side=side, state=state, after=after, limit=_CLIENTS, refusing=_REFUSING
        )
        return watched, {
            "lines": [ClientLine(each) for each in watched.clients.rows],
            "side": side.value,
            "state": state.value if state is not None else "",
            "states": [(each.value, look_of_rollout_client(each)) for each in ClientState],
            "next": watched.clients.after,
            "later": bool(after),
            "rollout_id": str(rollout_id),
        }


class _Now(TypedDict):
    """The template values of what may change while the page is open."""

    rollout: RolloutView
    look: str
    steps: list[StepLine]
    answers: Answers
    kinds: list[KindLine]
    refusals: list[Refusal]
    more_refusing: int


def _now(watched: RolloutWatch) -> _Now:
    view = watched.rollout
    over = view.state.ended
    return _Now(
        rollout=view,
        look=look_of_rollout(view.state, reverted=len(view.reverted)),
        steps=[_step(view, each) for each in view.steps],
        answers=Answers(view.counts),
        kinds=[KindLine(each.counts, each) for each in view.kinds],
        refusals=_kept_refusals(view) if over else _refusals(view, watched.refusing),
        more_refusing=0 if over else max(0, view.counts.refused - _REFUSING),
    )


def _step(view: RolloutView, step: StepView) -> StepLine:
    current = step.number == view.step and not view.state.ended
    if current:
        return StepLine(step, "rollout_step_now" if view.begun else "rollout_step_ahead", current=True)
    # The step at which it ended has the verdict of the rollout.
    outcome = step.outcome or (view.outcome if step.number == view.step and view.state.ended else None)
    if outcome is not None:
        return StepLine(step, "rollout_step_done" if outcome is Outcome.PASS else outcome.value, current=False)
    if step.ended_at is not None:
        return StepLine(step, "rollout_step_done", current=False)
    return StepLine(step, "rollout_step_never" if view.state.ended else "rollout_step_ahead", current=False)


def _refusals(view: RolloutView, refusing: Sequence[RolloutClient]) -> list[Refusal]:
    """What the first clients that refuse something say, each with the way to its incident."""
    told = [
        (client, answer) for client in refusing for answer in client.answers if answer.state is ClientState.REFUSED
    ][:_REFUSING]
    known = {(each.type, each.name): each.incident for each in view.resources if each.incident}
    for word, name in {(answer.type, answer.name) for _, answer in told} - known.keys():
        open_ones = incidents_of_name(environment_key=view.environment, word=word, name=name)
        known[word, name] = open_ones[0].id if open_ones else ""
    return [
        Refusal(
            answer.type,
            answer.name,
            resource_url(view.environment, answer.type, answer.name),
            answer.message,
            known.get((answer.type, answer.name), ""),
            client,
        )
        for client, answer in told
    ]


def _kept_refusals(view: RolloutView) -> list[Refusal]:
    """Of a rollout that is over, what the incidents tell about the first resources that it took back."""
    found = []
    for each in [each for each in view.reverted if each.incident][:_REFUSING]:
        incident = incident_get(public_id=each.incident).incident
        impact = f"{incident.clients.nacked} of {incident.clients.sent}"
        url = resource_url(view.environment, each.type, each.name)
        found.append(Refusal(each.type, each.name, url, incident.message, each.incident, impact=impact))
    return found


def _resources(view: RolloutView, environment_key: str) -> list[ResourceLine]:
    """The resources of the rollout, with what differs between the sides."""
    pairs = {(each.type, each.name): (each.from_revision, each.to_revision) for each in view.resources[:_DIFFS]}
    found = {each.key: each for each in revisions_differ(environment_key=environment_key, revisions=pairs)}
    return [
        ResourceLine(each, resource_url(environment_key, each.type, each.name), found.get((each.type, each.name)))
        for each in view.resources
    ]


def _chart(rollout_id: UUID) -> Chart | None:
    return rollout_chart(rollout_verdicts(public_id=str(rollout_id)))


urlpatterns = [
    path("e/<str:environment_key>/rollouts", RolloutsPage.as_view(), name="rollouts"),
    path("rollouts/<uuid:rollout_id>", RolloutPage.as_view(), name="rollout"),
]
PLACES = (Place(Section.CONFIGURATION, 35, "Rollouts", "rocket", "rollouts", also=("rollout", "rollout-settings")),)
