"""What every page offers: the places to go, and the environments to go there in."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.selectors import EnvironmentState, environment_list

_REMEMBERED: Final = "environment"


class Reach(Enum):
    """How much somebody must administer for a page to be of use to them."""

    NOTHING = "nothing"
    SOMETHING = "an environment"
    EVERYTHING = "all environments"


@dataclass(frozen=True, slots=True)
class Place:
    """A page in the navigation. `route` is the name of its path; `also` those of the pages below it."""

    label: str
    icon: str
    route: str
    of_environment: bool = True
    also: tuple[str, ...] = ()
    administers: Reach = Reach.NOTHING


@dataclass(frozen=True, slots=True)
class Group:
    """Pages of the navigation under one heading."""

    label: str
    places: tuple[Place, ...]


GROUPS: Final = (
    Group(
        "Now",
        (
            Place("Home", "home", "home", of_environment=False),
            Place("Incidents", "alert-triangle", "incidents", also=("incident",)),
            Place("Messages", "notes", "inbox", of_environment=False),
            Place("Clients", "plug-connected", "clients", also=("client",)),
            Place("Explain", "help", "explain", of_environment=False),
        ),
    ),
    Group(
        "Configuration",
        (
            Place("Resources", "stack-2", "resources", also=("resource", "resource-edit", "resource-new", "import")),
            Place("Access", "shield-lock", "access", also=("access-rule",)),
            Place("Changes", "git-commit", "changes", also=("change",)),
            Place("Snapshots", "layers-intersect", "snapshots", also=("snapshot", "compare", "rollback")),
            Place("Builds", "hammer", "builds"),
        ),
    ),
    Group(
        "Administration",
        (
            Place("Environments", "server", "environments", of_environment=False, also=("environment",)),
            Place("Tokens", "key", "tokens", of_environment=False, administers=Reach.SOMETHING),
            Place("Users", "users", "users", of_environment=False, also=("user",), administers=Reach.EVERYTHING),
            Place("Audit", "history", "audit", of_environment=False),
            Place("Setup guide", "plug", "setup"),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Link:
    """A link of the navigation, made for one request."""

    label: str
    icon: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class LinkGroup:
    """Links of the navigation under one heading, made for one request."""

    label: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The navigation around the content of a page. `environment` is the one the links lead into."""

    groups: tuple[LinkGroup, ...]
    environment: EnvironmentState | None
    switches: tuple[Link, ...]


def surroundings(request: HttpRequest, principal: Principal, current: EnvironmentState | None) -> Surroundings:
    """The navigation for one request; the environment that a user was in last is remembered in their session."""
    seen = [state for state in environment_list() if state.key in principal.sees([state.key])]
    if current is not None and request.session.get(_REMEMBERED) != current.key:
        request.session[_REMEMBERED] = current.key
    remembered = request.session.get(_REMEMBERED, "")
    chosen = current or next((state for state in seen if state.key == remembered), seen[0] if seen else None)
    route = request.resolver_match.url_name if request.resolver_match is not None else None
    reaches = _reaches(principal, seen)
    groups = tuple(
        LinkGroup(
            group.label,
            tuple(
                _link(place, chosen, route or "")
                for place in group.places
                if _leads(place, chosen) and place.administers in reaches
            ),
        )
        for group in GROUPS
    )
    switches = tuple(_switch(request, state, chosen) for state in seen)
    return Surroundings(tuple(group for group in groups if group.links), chosen, switches)


def _reaches(principal: Principal, seen: Sequence[EnvironmentState]) -> set[Reach]:
    """The degrees of administration that a principal reaches, by the environments they see."""
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
    """The link to the same page in another environment or, where the page is about something that only one environment
    has, to the resources.
    """
    match = request.resolver_match
    same = match is not None and match.url_name and set(match.kwargs) == {"environment_key"}
    route = str(match.url_name) if same and match is not None else "resources"
    return Link(state.key, "server", reverse(route, args=[state.key]), chosen is not None and state.key == chosen.key)
