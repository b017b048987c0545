"""The search box: understands client ids, node ids, names, ids of changes and incidents, words in comments, XDS codes
and pasted error texts.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.http import urlencode

from controlplane.accounts.principal import Role
from controlplane.catalog.searching import changes_found, resources_named_like
from controlplane.catalog.selectors import change_get
from controlplane.clients.browsing import ClientLine, client_page
from controlplane.common.errors import NotFound
from controlplane.console.clients import looks_of
from controlplane.console.comments import page_of
from controlplane.console.pages import Page
from controlplane.console.search_terms import Terms, terms_of
from controlplane.console.states import look_of_resource
from controlplane.discussion.selectors import comments_holding
from controlplane.incidents.selectors import incident_get
from controlplane.incidents.triage import incident_page
from controlplane.incidents.values import IncidentState
from controlplane.status.selectors import statuses_named
from xdscore.codes import CATALOGUE

_LISTED: Final = 10
_MAX_LOOKED_FOR: Final = 200


class SearchPage(Page):
    """The search page. Where there is one result only, its page is opened."""

    template = "console/search.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """Redirect to the only result, or list all results."""
        terms = terms_of(request.GET.get("q", ""))
        keys = self.principal.sees(state.key for state in self.environments)
        if terms.asks:
            return redirect(_explain_url(terms, keys))
        if terms.code == terms.text.upper() and terms.code in CATALOGUE:
            return redirect("code", terms.code)
        wanted = (terms.client or terms.text)[:_MAX_LOOKED_FOR]
        if not wanted:
            return self.page({"query": ""})
        if (found := self._called_by_id(wanted)) is not None:
            return redirect(*found)
        clients, client_count = client_page(environment_keys=keys, text=wanted, limit=_LISTED)
        exact = _the_one(clients, wanted)
        if exact is not None:
            return redirect("client", exact.client.id)
        return self._listed(terms, wanted, keys, clients, client_count)

    def _listed(
        self, terms: Terms, wanted: str, keys: tuple[str, ...], clients: tuple[ClientLine, ...], client_count: int
    ) -> HttpResponse:
        """The list of results, with these clients; a redirect where the only result is a change whose id begins with
        `wanted`. `keys`: the environments to search.
        """
        resources = resources_named_like(environment_keys=keys, text=wanted, limit=_LISTED)
        words = statuses_named(names={(each.environment, (each.type, each.name)) for each in resources})
        incidents, incident_count = incident_page(
            environment_keys=keys, states=tuple(IncidentState), text=wanted, limit=_LISTED
        )
        changes = changes_found(environment_keys=keys, text=wanted, limit=_LISTED)
        comments = comments_holding(text=wanted, environment_keys=keys, limit=_LISTED)
        if len(changes) == 1 and changes[0].author != wanted and not (clients or resources or incidents or comments):
            return redirect("change", changes[0].public_id)
        context = {
            "query": terms.text,
            "wanted": wanted,
            "code": terms.code if terms.code in CATALOGUE else "",
            "clients": looks_of(clients),
            "client_count": client_count,
            "resources": [
                (each, look_of_resource(words[each.environment, (each.type, each.name)]))
                for each in resources
                if (each.environment, (each.type, each.name)) in words
            ],
            "incidents": incidents,
            "incident_count": incident_count,
            "changes": changes,
            "comments": [(each, page_of(each.subject)) for each in comments],
            "nothing": not (clients or resources or incidents or changes or comments),
        }
        return self.page(context)

    def _called_by_id(self, wanted: str) -> tuple[str, str] | None:
        """The kind of page ("change" or "incident") and the id, where `wanted` is the id of one that the user may see;
        None otherwise.
        """
        try:
            public_id = str(UUID(wanted))
        except ValueError:
            return None
        places: Mapping[str, Callable[[str], str]] = {"change": _of_change, "incident": _of_incident}
        for route, environment_of in places.items():
            with suppress(NotFound):
                return (route, public_id) if self.principal.may(Role.VIEWER, environment_of(public_id)) else None
        return None


def _of_change(public_id: str) -> str:
    return change_get(public_id=public_id).environment.key


def _of_incident(public_id: str) -> str:
    return incident_get(public_id=public_id).incident.environment


def _the_one(clients: tuple[ClientLine, ...], wanted: str) -> ClientLine | None:
    """The only client with exactly this id or node id; None where there are none or several."""
    called = [each for each in clients if wanted in (each.client.id, each.client.node_id)]
    return called[0] if len(called) == 1 else None


def _explain_url(terms: Terms, keys: tuple[str, ...]) -> str:
    environment = terms.environment or (keys[0] if keys else "")
    # What the client was told matters where the text does not say which client it was.
    code = terms.code if not terms.client else ""
    given = {"e": environment, "t": terms.word, "n": terms.name, "c": terms.client, "code": code}
    return f"{reverse('explain')}?{urlencode({key: value for key, value in given.items() if value})}"


urlpatterns = [
    path("search", SearchPage.as_view(), name="search"),
]
