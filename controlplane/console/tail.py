"""The live tail of an environment: what happens on its streams, while it happens. A script shows what the API tells
(`api.views.tail`); the page itself holds the filter, and says what to do without scripts.
"""

from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import path

from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.tail.values import Kind
from xdscore.resource_types import RESOURCE_TYPES, by_word

_MAX_TEXT: Final = 1_024


class TailPage(Page):
    """The page on which the events of an environment are shown live."""

    template = "tail/page.html"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:  # noqa: ARG002  the path has it
        """The page for the filter in the URL; what cannot be a filter is left out."""
        client, name = (request.GET.get(each, "").strip()[:_MAX_TEXT] for each in ("client", "name"))
        word = request.GET.get("type", "")
        chosen = [each for each in Kind if each.value in request.GET.getlist("kind")]
        filters = {"client": client, "type": word if word in by_word else "", "name": name}
        asked = [*((key, value) for key, value in filters.items() if value), *(("kind", each.value) for each in chosen)]
        return self.page(
            {
                **filters,
                "types": RESOURCE_TYPES,
                "kinds": [(each.value, each in chosen) for each in Kind],
                "question": urlencode(asked),
            }
        )


urlpatterns = [
    path("e/<str:environment_key>/tail", TailPage.as_view(), name="tail"),
]

PLACES = (Place(Section.NOW, 45, "Live", "activity", "tail"),)
