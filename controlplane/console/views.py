"""The page of a code: what it means, and where it stands now. No rule is decided here."""

import re
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import path

from controlplane.builder.selectors import held_with_code
from controlplane.clients.browsing import client_page
from controlplane.clients.filtering import ClientFilter
from controlplane.clients.troubles import troubles_of
from controlplane.common.errors import NotFound
from controlplane.console.clients import looks_of
from controlplane.console.pages import Page
from controlplane.console.states import look_of_resource
from controlplane.incidents.triage import incident_page
from controlplane.status.selectors import statuses_named
from xdscore.codes import CATALOGUE, shown

_DENIED: Final = "XDS2103"
_WITHHELD: Final = "XDS2106"
_LISTED: Final = 20
# What is said of one thing in particular has places for it; here there is no such thing.
_PLACE: Final = re.compile(r"\{\w+\}")


class CodePage(Page):
    """The page that explains an error code, such as XDS1021. Codes shown on other pages link to it."""

    template = "console/code.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest, code: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """What the code means, and where it was found in the environments that the user may see."""
        row = CATALOGUE.get(code)
        if row is None:
            raise NotFound(f"There is no code '{shown(code)}'.")
        keys = self.principal.sees(state.key for state in self.environments)
        held, held_count = held_with_code(environment_keys=keys, code=code, withheld=code == _WITHHELD, limit=_LISTED)
        words = statuses_named(names={(key, (each.type, each.name)) for key, each in held})
        incidents, incident_count = incident_page(environment_keys=keys, text=code, limit=_LISTED)
        context: dict[str, object] = {
            "code": code,
            "row": row,
            "hint": _PLACE.sub("…", row.hint),
            "held": [
                (key, each, look_of_resource(words[key, (each.type, each.name)]))
                for key, each in held
                if (key, (each.type, each.name)) in words
            ],
            "held_count": held_count,
            "incidents": incidents,
            "incident_count": incident_count,
        }
        if code == _DENIED:
            troubles = troubles_of(environment_keys=keys)
            denied = ClientFilter(clients=troubles.denied)
            lines, count = client_page(environment_keys=keys, wanted=denied, limit=_LISTED, troubles=troubles)
            context |= {"clients": looks_of(lines), "client_count": count}
        return self.page(context)


urlpatterns = [
    path("codes/<str:code>", CodePage.as_view(), name="code"),
]
