"""The pages. Each reads selectors and renders; no rule is decided here."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import user_principal
from controlplane.catalog.selectors import EnvironmentState, counts_by_environment, environment_list
from controlplane.clients.selectors import connected_counts
from controlplane.errors import NotFound
from controlplane.explain.answers import Answer
from controlplane.explain.selectors import explain_name
from controlplane.incidents.selectors import incident_open_counts
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


@require_GET
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """What runs: every environment the user may see, with what is connected to it and what is wrong in it."""
    principal = _principal(request)
    resources, clients, incidents = counts_by_environment(), connected_counts(), incident_open_counts()
    cards = [
        EnvironmentCard(each, resources.get(each.key, 0), clients.get(each.key, 0), incidents.get(each.key, 0))
        for each in environment_list()
        if principal.may(Role.VIEWER, each.key)
    ]
    context = {"cards": cards, "ads_address": str(settings.PARLEY.ads_address), "types": RESOURCE_TYPES}
    return render(request, "console/home.html", context)


@require_GET
@login_required
def explain(request: HttpRequest) -> HttpResponse:
    """Where the link in an error text leads (interfaces.md section 5): `e` environment, `t` type, `n` name."""
    environment, word, name = (request.GET.get(key, "") for key in ("e", "t", "n"))
    problem, answer = _answer(_principal(request), environment, word, name)
    context = {
        "environment": environment,
        "word": word,
        "name": name,
        "problem": problem,
        "answer": answer,
        "types": RESOURCE_TYPES,
        "environments": [each.key for each in environment_list() if _principal(request).may(Role.VIEWER, each.key)],
    }
    return render(request, "explain/name.html", context, status=200 if answer is not None else 404 if problem else 200)


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


def _principal(request: HttpRequest) -> Principal:
    return user_principal(request.user) or Principal("nobody", ())
