"""How search shows what it found: where each thing is read, and under which heading it stands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils.http import urlencode

from controlplane.console.resources import resource_url
from controlplane.console.states import look_of_resource
from controlplane.search.values import Found, Hit, Kind
from controlplane.status.selectors import statuses_named


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of the things of one kind: words, an id, and the icon of each."""

    title: str
    id: str
    icon: str


HEADINGS: Final[Mapping[Kind, Heading]] = {
    Kind.ENVIRONMENT: Heading("Environments", "environments", "server"),
    Kind.RESOURCE: Heading("Resources", "resources", "stack-2"),
    Kind.CLIENT: Heading("Clients", "clients", "plug-connected"),
    Kind.INCIDENT: Heading("Incidents", "incidents", "alert-triangle"),
    Kind.CHANGE: Heading("Changes", "changes", "git-commit"),
    Kind.CHANGE_SET: Heading("Change sets", "change-sets", "file-diff"),
    Kind.ROLLOUT: Heading("Rollouts", "rollouts", "rocket"),
    Kind.SNAPSHOT: Heading("Snapshots", "snapshots", "layers-intersect"),
    Kind.GROUP: Heading("Client groups", "groups", "users"),
    Kind.RULE: Heading("Access rules", "rules", "shield-lock"),
    Kind.COMMENT: Heading("Comments", "comments", "notes"),
    Kind.CHANNEL: Heading("Channels", "channels", "upload"),
    Kind.TOKEN: Heading("Tokens", "tokens", "key"),
    Kind.CLIENT_TOKEN: Heading("Tokens of clients", "client-tokens", "key"),
    Kind.PERSON: Heading("People", "people", "user"),
}


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A thing that was found. `look`: the key in `states.LOOKS` of its badge; empty without one. `explain_url`: of a
    resource, where Explain is asked of it; else empty.
    """

    hit: Hit
    url: str
    look: str = ""
    explain_url: str = ""


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """The things of one kind, under their heading. `more`: there are others."""

    kind: Kind
    heading: Heading
    lines: tuple[FoundLine, ...]
    more: bool


def groups_shown(found: Sequence[Found], *, looks: Mapping[str, str] | None = None) -> tuple[FoundGroup, ...]:
    """What was found, as pages show it, with the state of each resource. `looks`: the badges of clients by id, where
    they are known. One query at most.
    """
    resources = [hit for each in found if each.kind is Kind.RESOURCE for hit in each.hits]
    names = {(hit.environment, (hit.type, hit.name)) for hit in resources}
    statuses = statuses_named(names=names) if names else {}

    def line(hit: Hit) -> FoundLine:
        if hit.kind is not Kind.RESOURCE:
            return FoundLine(hit, url_of(hit), _look(hit) or (looks or {}).get(hit.id, ""))
        status = statuses.get((hit.environment, (hit.type, hit.name)))
        asked = urlencode({"e": hit.environment, "t": hit.type, "n": hit.name})
        look = look_of_resource(status) if status is not None else ""
        return FoundLine(hit, url_of(hit), look, f"{reverse('explain')}?{asked}")

    return tuple(
        FoundGroup(each.kind, HEADINGS[each.kind], tuple(line(hit) for hit in each.hits), each.more) for each in found
    )


def options_shown(found: Sequence[Found]) -> tuple[FoundGroup, ...]:
    """What was found, as it is suggested to somebody who is still typing: without states, and without a query."""
    return tuple(
        FoundGroup(each.kind, HEADINGS[each.kind], tuple(FoundLine(hit, url_of(hit)) for hit in each.hits), each.more)
        for each in found
    )


def url_of(hit: Hit) -> str:
    """The URL of the page on which a thing that was found is read."""
    return _URLS[hit.kind](hit)


def _look(hit: Hit) -> str:
    match hit.kind:
        case Kind.INCIDENT:
            return hit.state
        case Kind.CHANGE_SET:
            return f"set_{hit.state}"
        case Kind.ROLLOUT:
            return f"rollout_{hit.state}"
        case _:
            return ""


def _comment(hit: Hit) -> str:
    if hit.type in ("change", "incident"):
        return f"{reverse(hit.type, args=[hit.subject])}#comment-{hit.id}"
    return f"{resource_url(hit.environment, hit.type, hit.subject)}&tab=comments#comment-{hit.id}"


def _in_access(fragment: str) -> Callable[[Hit], str]:
    return lambda hit: f"{reverse('access', args=[hit.environment])}#{fragment.format(id=hit.id)}"


def _by_id(route: str) -> Callable[[Hit], str]:
    return lambda hit: reverse(route, args=[hit.id])


def _tokens(hit: Hit) -> str:
    kind = {"kind": "client"} if hit.kind is Kind.CLIENT_TOKEN else {}
    return f"{reverse('tokens')}?{urlencode({**kind, 'text': hit.name})}"


_URLS: Final[Mapping[Kind, Callable[[Hit], str]]] = {
    Kind.ENVIRONMENT: _by_id("environment"),
    Kind.RESOURCE: lambda hit: resource_url(hit.environment, hit.type, hit.name),
    Kind.CLIENT: _by_id("client"),
    Kind.INCIDENT: _by_id("incident"),
    Kind.CHANGE: _by_id("change"),
    Kind.CHANGE_SET: _by_id("change-set"),
    Kind.ROLLOUT: _by_id("rollout"),
    Kind.SNAPSHOT: lambda hit: reverse("snapshot", args=[hit.environment, int(hit.id)]),
    Kind.GROUP: _in_access("groups"),
    Kind.RULE: _in_access("rule-{id}"),
    Kind.COMMENT: _comment,
    Kind.CHANNEL: _by_id("channel"),
    Kind.TOKEN: _tokens,
    Kind.CLIENT_TOKEN: _tokens,
    Kind.PERSON: _by_id("user"),
}
