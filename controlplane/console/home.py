"""The front page: is something wrong, where, and what was changed last. Every number leads to what it counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone

from controlplane.broker.probe import ANSWERS, probe
from controlplane.builder.condition import BUILDS, builder_state
from controlplane.catalog.freezes import Frozen, frozen_at
from controlplane.catalog.searching import changes_latest
from controlplane.catalog.selectors import EnvironmentState
from controlplane.changesets.selectors import review_counts
from controlplane.clients.browsing import Standing, standing_counts
from controlplane.clients.selectors import ReplicaView, replica_list
from controlplane.console.charts import fleet_chart, nacks_chart, recent
from controlplane.console.live import shared
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.console.states import look_of_environment
from controlplane.fitness.selectors import Unfit, processes_unfit
from controlplane.incidents.triage import incident_page
from controlplane.rollouts.selectors import rollouts_brief
from controlplane.status.environments import EnvironmentStatus
from controlplane.status.selectors import environment_statuses
from controlplane.status.sentence import Sentence
from controlplane.status.sentences import environment_sentences

_INCIDENTS: Final = 5
_CHANGES: Final = 10


@dataclass(frozen=True, slots=True)
class EnvironmentCard:
    """An environment on the front page. `sentence`: what matters most about it; `incidents`: how many are unresolved;
    `standing`: how many clients stand in each way; `rollout`: the id of the open rollout, empty where none is;
    `reviews`: how many change sets wait for review.
    """

    environment: EnvironmentState
    status: EnvironmentStatus
    sentence: Sentence
    incidents: int
    standing: Mapping[Standing, int]
    rollout: str = ""
    reviews: int = 0

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows how the environment stands."""
        return look_of_environment(self.status.status)

    @property
    def frozen(self) -> Frozen | None:
        """The freeze that holds now; None where none does."""
        return frozen_at(self.environment.policy.freezes, timezone.now())

    @property
    def connected(self) -> int:
        """The number of clients with an open stream."""
        return sum(self.standing.values()) - self.standing[Standing.GONE]

    @property
    def refusing(self) -> int:
        """The number of clients that refuse some resource now."""
        return self.standing[Standing.REFUSING]

    @property
    def denied(self) -> int:
        """The number of clients that ask for something they may not read."""
        return self.standing[Standing.DENIED]

    @property
    def silent(self) -> int:
        """The number of clients that were sent something and have not answered in time."""
        return self.standing[Standing.SILENT]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of Parley itself, such as the builder. `works`: it does; `says`: a sentence about that."""

    name: str
    works: bool
    says: str


class HomePage(Page):
    """The front page: how every environment stands that the user may see."""

    template = "console/home.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """The front page; with `?part=now` or `?part=charts`, only that part, refreshed while the page is open."""
        seen = tuple(state for state in self.environments if self.principal.sees([state.key]))
        keys = "/".join(state.key for state in seen)
        if request.GET.get("part") == "charts":
            return self.part("console/home_charts.html", shared(f"charts/{keys}", lambda: _over_time(seen)))
        if request.GET.get("part") == "now":
            return self.part("console/home_now.html", {**shared(f"home/{keys}", lambda: _now(seen)), "part": True})
        partly = any(scope.limits for scope in self.principal.scopes)
        return self.page({**_now(seen), "partly": partly, **shared(f"charts/{keys}", lambda: _over_time(seen))})


def _now(seen: tuple[EnvironmentState, ...]) -> dict[str, object]:
    """The template values that say how these environments stand; equal for all users who may see exactly these."""
    keys = [state.key for state in seen]
    statuses, standing = environment_statuses(environments=seen), standing_counts(environment_keys=keys)
    urgent, unresolved = incident_page(environment_keys=keys, limit=_INCIDENTS)
    rollouts, reviews = rollouts_brief(environment_keys=keys), review_counts(environment_keys=keys)
    sentences = environment_sentences(environments=seen, statuses=statuses, standing=standing, rollouts=rollouts)
    cards = [
        EnvironmentCard(
            each,
            statuses[each.key],
            sentences[each.key],
            statuses[each.key].unattended,
            standing[each.key],
            rollouts[each.key].id if each.key in rollouts else "",
            reviews[each.key],
        )
        for each in seen
    ]
    return {
        "cards": cards,
        "title": title_of(cards, unresolved=unresolved),
        "urgent": urgent,
        "unresolved": unresolved,
        "changes": changes_latest(environment_keys=keys, limit=_CHANGES),
        "parts": (*_parts(replica_list()), *_unfit(processes_unfit())),
        "connected": sum(card.connected for card in cards),
        "ads_address": str(settings.PARLEY.ads_public_address),
    }


def _over_time(seen: tuple[EnvironmentState, ...]) -> dict[str, object]:
    """The template values of the pictures of these environments, all together."""
    keys, window = [state.key for state in seen], recent()
    return {"charts": (fleet_chart(keys, window), nacks_chart(keys, window))}


def title_of(cards: Sequence[EnvironmentCard], *, unresolved: int) -> str:
    """One line about what matters most in these environments. It says that all is well only while everything is."""
    losses, unserved = sum(card.status.losses for card in cards), sum(card.status.unserved for card in cards)
    connected, refusing = sum(card.connected for card in cards), sum(card.refusing for card in cards)
    denied, silent = sum(card.denied for card in cards), sum(card.silent for card in cards)
    told = (
        (not cards, "Home"),
        (losses, f"{_are(losses, 'loss', 'losses')} open: clients do not have what they had"),
        (unresolved, f"{_are(unresolved, 'incident', 'incidents')} unresolved"),
        (unserved, f"No incident; {_are(unserved, 'resource', 'resources')} not served as written"),
        (refusing or silent or denied, f"No incident; {refusing} refusing, {denied} denied, {silent} silent"),
        (connected, f"{connected} client{'' if connected == 1 else 's'}, and nothing is refused"),
    )
    return next((text for true, text in told if true), "Nothing is refused, and nobody is connected")


def _are(count: int, one: str, many: str) -> str:
    return f"{count} {one} is" if count == 1 else f"{count} {many} are"


def _parts(replicas: tuple[ReplicaView, ...]) -> tuple[Part, ...]:
    broker, builder = probe.state(), builder_state()
    running = [each for each in replicas if not each.stopped]
    streams = sum(each.streams for each in running)
    ads = f"{len(running)} process{'es' if len(running) != 1 else ''}, {streams} stream{'s' if streams != 1 else ''}"
    return (
        Part("Builder", builder == BUILDS, "builds what is written" if builder == BUILDS else builder),
        Part("ADS", bool(running), ads if running else "no process has reported within a day"),
        # The broker is a hint: without it everything goes on, up to two seconds later (architecture.md law 4).
        Part(
            "Redis", broker == ANSWERS, "answers" if broker == ANSWERS else f"{broker}; changes take up to 2 s longer"
        ),
    )


def _unfit(found: Sequence[Unfit]) -> list[Part]:
    """What to show of processes whose keys, tables or clock do not fit this installation."""
    return [Part(f"{each.role} {each.where}", works=False, says=f"{each.check}: {each.text}") for each in found]


urlpatterns = [
    path("", HomePage.as_view(), name="home"),
]
PLACES = (Place(Section.NOW, 10, "Home", "home", "home", of_environment=False),)
