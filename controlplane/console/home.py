"""The front page: is something wrong, where, and what was changed last. Every number leads to what it counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from controlplane.broker_probe import ANSWERS, probe
from controlplane.builder.condition import BUILDS, builder_state
from controlplane.catalog.searching import changes_latest
from controlplane.catalog.selectors import EnvironmentState, counts_by_environment, environment_list
from controlplane.clients.browsing import Standing, standing_counts
from controlplane.clients.selectors import ReplicaView, replica_list
from controlplane.console.live import shared
from controlplane.console.pages import Page
from controlplane.incidents.selectors import incident_open_counts
from controlplane.incidents.triage import incident_page

_INCIDENTS: Final = 5
_CHANGES: Final = 10


@dataclass(frozen=True, slots=True)
class EnvironmentCard:
    """One environment on the front page."""

    environment: EnvironmentState
    resources: int
    incidents: int
    standing: Mapping[Standing, int]

    @property
    def look(self) -> str:
        """Its state, for the badge."""
        if self.environment.policy.hold:
            return "held"
        return "building" if self.environment.generation > self.environment.built_generation else "served"

    @property
    def connected(self) -> int:
        """Clients with an open stream, however they stand."""
        return sum(self.standing.values()) - self.standing[Standing.GONE]

    @property
    def refusing(self) -> int:
        """Clients that refuse something."""
        return self.standing[Standing.REFUSING]

    @property
    def denied(self) -> int:
        """Clients that are told that they may not read what they ask for."""
        return self.standing[Standing.DENIED]

    @property
    def silent(self) -> int:
        """Clients that owe an answer."""
        return self.standing[Standing.SILENT]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of Parley itself: whether it works, and what that means."""

    name: str
    works: bool
    says: str


class HomePage(Page):
    """What runs in every environment the user may see."""

    template = "console/home.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """The page, or with `?part=now` what of it may change while it is open."""
        seen = tuple(state for state in environment_list() if self.principal.sees([state.key]))
        if request.GET.get("part") == "now":
            keys = "/".join(state.key for state in seen)
            return self.part("console/home_now.html", {**shared(f"home/{keys}", lambda: _now(seen)), "part": True})
        return self.page(_now(seen))


def _now(seen: tuple[EnvironmentState, ...]) -> dict[str, object]:
    """How these environments stand: the same for all who see just them."""
    keys = [state.key for state in seen]
    resources, open_incidents = counts_by_environment(), incident_open_counts()
    standing = standing_counts(environment_keys=keys)
    urgent, unresolved = incident_page(environment_keys=keys, limit=_INCIDENTS)
    cards = [
        EnvironmentCard(each, resources.get(each.key, 0), open_incidents.get(each.key, 0), standing[each.key])
        for each in seen
    ]
    return {
        "cards": cards,
        "urgent": urgent,
        "unresolved": unresolved,
        "changes": changes_latest(environment_keys=keys, limit=_CHANGES),
        "parts": _parts(replica_list()),
        "connected": sum(card.connected for card in cards),
        "refusing": sum(card.refusing for card in cards),
        "silent": sum(card.silent for card in cards),
        "denied": sum(card.denied for card in cards),
        "ads_address": str(settings.PARLEY.ads_public_address),
    }


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
