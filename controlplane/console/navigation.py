"""What every page offers: the places to go, and the environments to go there in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.selectors import EnvironmentState
from controlplane.console.places import Place, Reach, Section, places

_REMEMBERED: Final = "environment"


@dataclass(frozen=True, slots=True)
class Link:
    """A link of the navigation, for one request. `current`: it leads to the page that is shown."""

    label: str
    icon: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class LinkGroup:
    """Links of the navigation under one heading, for one request."""

    label: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The navigation of a page. `environment`: the one into which the links lead; None where the user sees none.
    `switches`: links to the same page in each environment.
    """

    groups: tuple[LinkGroup, ...]
    environment: EnvironmentState | None
    switches: tuple[Link, ...]


def surroundings(
    request: HttpRequest,
    principal: Principal,
    environments: Sequence[EnvironmentState],
    current: EnvironmentState | None,
) -> Surroundings:
    """The navigation for one request. `environments`: all there are; `current`: the environment of the page; where that
    is None, the one the user was in last, which their session remembers.
    """
    seen = [state for state in environments if state.key in principal.sees([state.key])]
    if current is not None and request.session.get(_REMEMBERED) != current.key:
        request.session[_REMEMBERED] = current.key
    remembered = request.session.get(_REMEMBERED, "")
    chosen = current or next((state for state in seen if state.key == remembered), seen[0] if seen else None)
    route = request.resolver_match.url_name if request.resolver_match is not None else None
    reaches = _reaches(principal, seen)
    groups = tuple(
        LinkGroup(
            section.value,
            tuple(
                _link(place, chosen, route or "")
                for place in places()
                if place.section is section and _leads(place, chosen) and place.administers in reaches
            ),
        )
        for section in Section
    )
    switches = tuple(_switch(request, state, chosen) for state in seen)
    return Surroundings(tuple(group for group in groups if group.links), chosen, switches)


def _reaches(principal: Principal, seen: Sequence[EnvironmentState]) -> set[Reach]:
    """The degrees of administration that a principal has; `seen` are the environments that they may see."""
    if principal.may(Role.ADMIN, None):
        return set(Reach)
    some = any(principal.may(Role.ADMIN, state.key) for state in seen)
    return {Reach.NOTHING, Reach.SOMETHING} if some else {Reach.NOTHING}


def _leads(place: Place, chosen: EnvironmentState | None) -> bool:
    return chosen is not None or not place.of_environment


def _link(place: Place, chosen: EnvironmentState | None, route: str) -> Link:
    keys = [chosen.key] if place.of_environment and chosen is not None else []
    return Link(place.label, place.icon, reverse(place.route, args=keys), route in (place.route, *place.also))


def _switch(request: HttpRequest, state: EnvironmentState, chosen: EnvironmentState | None) -> Link:
    """The link that leads to the environment `state`: to the same page there or, where the page is about something that
    only one environment has, to its resources.
    """
    match = request.resolver_match
    same = match is not None and match.url_name and set(match.kwargs) == {"environment_key"}
    route = str(match.url_name) if same and match is not None else "resources"
    return Link(state.key, "server", reverse(route, args=[state.key]), chosen is not None and state.key == chosen.key)
