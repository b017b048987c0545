"""The search box and the palette: names, words and numbers of whatever there is, XDS codes, pasted error texts, and
commands.
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
from controlplane.catalog.selectors import change_get
from controlplane.clients.browsing import client_page
from controlplane.clients.filtering import ClientFilter
from controlplane.common.errors import NotFound
from controlplane.console.acts import Answer, answer_of, pages_called
from controlplane.console.clients import looks_of
from controlplane.console.commands import COMMANDS, HELP, intent_of, suggestions_for
from controlplane.console.found import groups_shown, options_shown, url_of
from controlplane.console.navigation import surroundings
from controlplane.console.pages import Page
from controlplane.console.search_terms import Terms, terms_of
from controlplane.incidents.selectors import incident_get
from controlplane.search.contents import MAX_BYTES
from controlplane.search.selectors import search, sight_of
from controlplane.search.sources import NEWEST, Sight
from controlplane.search.values import Kind, Results
from xdscore.codes import CATALOGUE
from xdscore.routing.access_log import is_log

_MAX_LOOKED_FOR: Final = 200
_OF_ONE_KIND: Final = 100
_WHILE_TYPING: Final = 4
_MIN_PAGE_CHARS: Final = 2
_NUMBERED: Final = frozenset({Kind.CHANGE, Kind.SNAPSHOT, Kind.RULE})
_IDENTIFIED: Final = frozenset({Kind.CHANGE, Kind.INCIDENT, Kind.CHANGE_SET, Kind.ROLLOUT})
# Comments are long, and read on a page of their own.
_TYPED_KINDS: Final = tuple(kind for kind in Kind if kind is not Kind.COMMENT)


class SearchPage(Page):
    """The search page. Where there is one result only, its page is opened. With `?kind=`, results of one kind alone."""

    template = "console/search.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """Redirect to the only result, or list all results; with `?part=options`, what a text that is still being typed
        may lead to.
        """
        text = request.GET.get("q", "")
        if request.GET.get("part") == "options":
            return self._options(text)
        terms = terms_of(text)
        keys = self.principal.sees(state.key for state in self.environments)
        if terms.asks:
            return redirect(_explain_url(terms, keys))
        if terms.code == terms.text.upper() and terms.code in CATALOGUE:
            return redirect("code", terms.code)
        wanted = (terms.client or terms.text)[:_MAX_LOOKED_FOR]
        if not wanted or wanted == HELP:
            return self.page({"query": "", "commands": COMMANDS})
        if (found := self._called_by_id(wanted)) is not None:
            return redirect(*found)
        return self._listed(terms, wanted, _kind(request.GET.get("kind", "")))

    @property
    def _sight(self) -> Sight:
        return sight_of(self.principal, (state.key for state in self.environments))

    def _listed(self, terms: Terms, wanted: str, kind: Kind | None) -> HttpResponse:
        """The list of results; a redirect where there is one only, and no command. `kind`: only results of that."""
        answer = self._answered(terms.text)
        results = (
            search(sight=self._sight, text=wanted)
            if kind is None
            else search(sight=self._sight, text=wanted, kinds=(kind,), limit=_OF_ONE_KIND)
        )
        only = _only(results, wanted)
        log_of = self._log_of(terms.text)
        if only and answer is None and kind is None and not log_of:
            return redirect(only)
        context = {
            "query": terms.text,
            "wanted": wanted,
            "code": terms.code if terms.code in CATALOGUE else "",
            "answer": answer,
            "log_of": log_of,
            "kind": kind,
            "groups": groups_shown(results.found, looks=self._looks(results) if kind is Kind.CLIENT else None),
            "unsearched": results.unsearched,
            "newest": f"{NEWEST:,}",
            "content_mib": MAX_BYTES // 2**20,
            "of_one_kind": _OF_ONE_KIND,
            "commands": COMMANDS,
        }
        return self.page(context)

    def _options(self, text: str) -> HttpResponse:
        """What a text that is still being typed may lead to: acts, things, and ways to go on."""
        answer = self._answered(text)
        results = search(sight=self._sight, text=text, kinds=_TYPED_KINDS, limit=_WHILE_TYPING, contents=False)
        around = surroundings(self.request, self.principal, self.environments, None)
        named = len(text.strip()) >= _MIN_PAGE_CHARS and answer is None
        context = {
            "query": text,
            "answer": answer,
            "pages": tuple(pages_called(text, around))[:_WHILE_TYPING] if named else (),
            "groups": options_shown(results.found),
            "suggestions": suggestions_for(text),
        }
        return self.part("console/search_options.html", context)

    def _answered(self, text: str) -> Answer | None:
        """What the command leads to that a text is; None where it is none."""
        intent = intent_of(text)
        if intent is None:
            return None
        around = surroundings(self.request, self.principal, self.environments, None)
        return answer_of(intent, sight=self._sight, around=around)

    def _log_of(self, text: str) -> str:
        """The key of the environment in which to ask about the request that a text is a line of a log of; empty where
        it is none, or the user sees no environment.
        """
        around = surroundings(self.request, self.principal, self.environments, None)
        if around.environment is None or not is_log(text):
            return ""
        return around.environment.key

    def _looks(self, results: Results) -> Mapping[str, str]:
        """How the clients stand that were found, by id."""
        ids = [hit.id for each in results.found for hit in each.hits]
        lines, _ = client_page(environment_keys=self._sight.keys, wanted=ClientFilter(clients=ids), limit=_OF_ONE_KIND)
        return {line.client.id: look for line, look in looks_of(lines)}

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


def _kind(text: str) -> Kind | None:
    return Kind(text) if text in set(Kind) else None


def _only(results: Results, wanted: str) -> str:
    """The URL of what was meant: the only client with exactly this id or node id, or the only thing there is of which
    what is wanted is the number, or begins the id; empty where that is not sure.
    """
    clients = results.by_kind.get(Kind.CLIENT)
    called = [hit for hit in clients.hits if wanted in (hit.id, hit.name)] if clients is not None else []
    if len(called) == 1:
        return url_of(called[0])
    hits = [hit for each in results.found for hit in each.hits]
    begins = wanted.replace("-", "").lower()
    if len(hits) != 1:
        return ""
    numbered = begins.isdigit() and hits[0].kind in _NUMBERED
    identified = hits[0].kind in _IDENTIFIED and hits[0].id.replace("-", "").startswith(begins)
    return url_of(hits[0]) if numbered or identified else ""


def _explain_url(terms: Terms, keys: tuple[str, ...]) -> str:
    environment = terms.environment or (keys[0] if keys else "")
    # What the client was told matters where the text does not say which client it was.
    code = terms.code if not terms.client else ""
    given = {"e": environment, "t": terms.word, "n": terms.name, "c": terms.client, "code": code}
    return f"{reverse('explain')}?{urlencode({key: value for key, value in given.items() if value})}"


urlpatterns = [
    path("search", SearchPage.as_view(), name="search"),
]
