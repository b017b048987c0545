"""The pages. Each reads selectors and renders; no rule is decided here."""

from django.http import HttpRequest, HttpResponse

from controlplane.console.pages import Page
from controlplane.errors import NotFound
from xdscore.codes import CATALOGUE, shown


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
