"""The pages. Each reads selectors and renders; no rule is decided here."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.selectors import EnvironmentState, counts_by_environment, environment_list
from controlplane.clients.selectors import connected_counts
from controlplane.console.pages import Page
from controlplane.errors import NotFound
from controlplane.explain.answers import Answer
from controlplane.explain.selectors import explain_name
from controlplane.incidents.selectors import incident_open_counts
from xdscore.codes import CATALOGUE, shown
from xdscore.names import name_problem
from xdscore.resource_types import RESOURCE_TYPES, by_word


@dataclass(frozen=True, slots=True)
class EnvironmentCard:
    """One environment on the front page."""

    environment: EnvironmentState
    resources: int
    clients: int
    incidents: int

    @property
    def building(self) -> bool:
        """Whether something was written that is not published yet."""
        return self.environment.generation > self.environment.built_generation


class HomePage(Page):
    """What runs: every environment the user may see, with what is connected to it and what is wrong in it."""

    template = "console/home.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:  # noqa: ARG002 - Django's
        """The page."""
        resources, clients, incidents = counts_by_environment(), connected_counts(), incident_open_counts()
        cards = [
            EnvironmentCard(each, resources.get(each.key, 0), clients.get(each.key, 0), incidents.get(each.key, 0))
            for each in environment_list()
            if self.principal.may(Role.VIEWER, each.key)
        ]
        return self.page({"cards": cards, "ads_address": str(settings.PARLEY.ads_address), "types": RESOURCE_TYPES})


class ExplainPage(Page):
    """Where the link in an error text leads (interfaces.md section 5): `e` environment, `t` type, `n` name."""

    template = "explain/name.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """The answer, or a form to ask."""
        environment, word, name = (request.GET.get(key, "") for key in ("e", "t", "n"))
        problem, answer = _answer(self.principal, environment, word, name)
        context = {
            "asked": environment,
            "word": word,
            "name": name,
            "problem": problem,
            "answer": answer,
            "types": RESOURCE_TYPES,
        }
        return self.page(context, status=404 if problem and answer is None else 200)


class CodePage(Page):
    """What a code means: wherever a page shows one, it leads here."""

    template = "console/code.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest, code: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """The catalogue's row."""
        row = CATALOGUE.get(code)
        if row is None:
            raise NotFound(f"There is no code '{shown(code)}'.")
        return self.page({"code": code, "row": row})


class SearchPage(Page):
    """The search box: a code leads to what it means, anything else to Explain."""

    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """Where to."""
        query = request.GET.get("q", "").strip()
        if query.upper() in CATALOGUE:
            return redirect("code", query.upper())
        return redirect(f"{reverse('explain')}?{urlencode({'n': query[:1024]})}")


def _answer(principal: Principal, environment: str, word: str, name: str) -> tuple[str, Answer | None]:
    """(what is wrong with the question, the answer); both empty while nothing was asked."""
    if not (environment or word or name):
        return "", None
    kind = by_word.get(word)
    if kind is None:
        return f"'{word}' is not a resource type. Types are: {', '.join(by_word)}.", None
    if wrong := name_problem(name):
        return f"The name {wrong}.", None
    unknown = f"There is no environment '{environment}'."
    if not principal.may(Role.VIEWER, environment):
        return unknown, None
    try:
        return "", explain_name(environment_key=environment, kind=kind, name=name)
    except NotFound:
        return unknown, None
