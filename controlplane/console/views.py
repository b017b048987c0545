"""The pages. Each reads selectors and renders; no rule is decided here."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from controlplane.accounts.principal import Role
from controlplane.catalog.selectors import EnvironmentState, counts_by_environment, environment_list
from controlplane.clients.selectors import connected_counts
from controlplane.console.pages import Page
from controlplane.errors import NotFound
from controlplane.incidents.selectors import incident_open_counts
from xdscore.codes import CATALOGUE, shown
from xdscore.resource_types import RESOURCE_TYPES


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
