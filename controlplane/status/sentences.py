"""Answers in one sentence how each of some environments stands. Values only, never rows.

Read anew each time, and only what the status in one word leaves open: who lost or refuses what, where a rollout is, or
whether clients have what is published. The number of queries does not grow with anything.
"""

from collections.abc import Collection, Mapping
from typing import Final

from django.db.models import Case, Exists, F, IntegerField, OuterRef, Q, Value, When, Window
from django.db.models.functions import RowNumber

from controlplane.catalog.models import Change, Resource
from controlplane.catalog.selectors import EnvironmentState
from controlplane.clients.browsing import Standing, standing_counts
from controlplane.clients.serving import behind_counts
from controlplane.clients.silence import unanswered_counts
from controlplane.incidents.models import Incident
from controlplane.incidents.values import UNRESOLVED, IncidentCause
from controlplane.rollouts.selectors import rollouts_brief
from controlplane.rollouts.values import RolloutBrief
from controlplane.snapshots.selectors import published_times
from controlplane.status.environments import EnvironmentStatus, Headline
from controlplane.status.sentence import OpenRollout, Scene, Sentence, Worst, environment_sentence

_BY_INCIDENT: Final = frozenset({Headline.LOST, Headline.REFUSED})

StandingCounts = Mapping[str, Mapping[Standing, int]]
"""How many clients stand in each way, by environment key."""


def environment_sentences(
    *,
    environments: Collection[EnvironmentState],
    statuses: Mapping[str, EnvironmentStatus],
    standing: StandingCounts | None = None,
    rollouts: Mapping[str, RolloutBrief] | None = None,
) -> Mapping[str, Sentence]:
    """The sentence about each of these environments, by key. `statuses`: how they stand, by key; `standing`,
    `rollouts`: how their clients stand and which rollouts are open, where the caller has read that already.
    """

    def those(*words: Headline) -> list[EnvironmentState]:
        return [each for each in environments if statuses[each.key].status in words]

    scenes = {each.key: Scene(hold=each.policy.hold) for each in environments}
    if found := those(*_BY_INCIDENT):
        worst = _worst([each.key for each in found])
        scenes |= {each.key: Scene(worst=worst.get(each.key)) for each in found}
    if found := those(Headline.WAITING):
        keys = [each.key for each in found]
        open_here = rollouts if rollouts is not None else rollouts_brief(environment_keys=keys)
        scenes |= {key: Scene(rollout=_rollout(open_here.get(key))) for key in keys}
    if found := those(Headline.PUBLISHED):
        scenes |= _delivered(found, standing)
    return {key: environment_sentence(statuses[key], scene) for key, scene in scenes.items()}


def _delivered(environments: Collection[EnvironmentState], standing: StandingCounts | None) -> dict[str, Scene]:
    """What is known of the clients of environments in which everything is published."""
    keys = [each.key for each in environments]
    counts = standing if standing is not None else standing_counts(environment_keys=keys)
    unanswered, times = unanswered_counts(environment_keys=keys), published_times(environment_keys=keys)
    behind = behind_counts(epochs={each.key: (each.lineage, each.epoch) for each in environments if each.epoch})
    return {
        key: Scene(
            connected=sum(counts[key].values()) - counts[key][Standing.GONE],
            refusing=counts[key][Standing.REFUSING],
            unanswered=unanswered.get(key, 0),
            behind=behind.get(key, 0),
            published_at=times.get(key),
        )
        for key in keys
    }


def _worst(environment_keys: Collection[str]) -> Mapping[str, Worst]:
    """The unresolved incident of each environment that matters most, by key. Two queries."""
    # A refusal of what is not the newest revision any more is told where there is no other.
    newest = Resource.objects.filter(
        environment=OuterRef("environment"),
        type=OuterRef("type"),
        name=OuterRef("name"),
        deleted=False,
        head__version=OuterRef("version"),
    )
    rank = Case(
        When(cause=IncidentCause.LOSS.value, then=Value(0)),
        When(Q(name="") | Exists(newest), then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    rows = Incident.objects.filter(
        environment__key__in=list(environment_keys), state__in=[state.value for state in UNRESOLVED]
    )
    placed = rows.annotate(
        place=Window(RowNumber(), partition_by=F("environment"), order_by=(rank, F("nacked").desc(), F("pk").desc()))
    )
    found = list(placed.filter(place=1).select_related("environment"))
    changes = [row.change for row in found if row.change]
    messages = {
        str(public_id): message
        for public_id, message in Change.objects.filter(public_id__in=changes).values_list("public_id", "message")
    }
    return {row.environment.key: _worst_of(row, messages.get(row.change, "")) for row in found}


def _worst_of(row: Incident, message: str) -> Worst:
    names = len((row.loss or {}).get("names", ())) if row.cause == IncidentCause.LOSS.value else 1
    return Worst(
        id=str(row.public_id),
        cause=IncidentCause(row.cause),
        clients=row.nacked,
        of=max(row.sent, row.nacked),
        type=row.type,
        name=row.name,
        since=row.first_at,
        revision=row.revision,
        names=max(names, 1),
        change=row.change,
        author=row.author,
        message=message,
    )


def _rollout(found: RolloutBrief | None) -> OpenRollout | None:
    if found is None:
        return None
    return OpenRollout(found.id, found.state, found.step, found.steps, found.waits_for)
