"""The schema of the API, and a page to read it with (offline: its files come with the package)."""

from functools import cache
from threading import Lock
from typing import Any, Final

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request

from controlplane.api.answers import rendered
from controlplane.api.query import Query
from controlplane.api.views.base import ApiView, Needs

# The library loads its extensions when it is first asked, and cannot be asked by two threads meanwhile.
_ONE_AT_A_TIME: Final = Lock()


class SchemaView(ApiView):
    """Read the API's OpenAPI 3.1 schema, as JSON or, where the Accept header prefers it, YAML."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """The whole schema of the API."""
        Query(request, ()).done()
        return rendered(request, schema())


class SchemaPageView(ApiView, SpectacularSwaggerSplitView):
    """Shows the OpenAPI schema in Swagger UI. The page has no inline script: `?script=` answers its script."""

    needs = {"GET": Needs.ANYBODY}
    url_name = "api-schema"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: object, **kwargs: object) -> HttpResponseBase:
        """The Swagger UI page or, with `?script=`, its script."""
        request.accepted_renderer = self.renderer_classes[0]()
        request.accepted_media_type = request.accepted_renderer.media_type
        answer: HttpResponseBase = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]  # untyped
        return answer


def schema() -> dict[str, Any]:
    """The OpenAPI schema of the API. Made once: only the code decides what is in it."""
    with _ONE_AT_A_TIME:
        return _schema()


@cache
def _schema() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]  # untyped library
    made: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # same
    return made


urlpatterns = [
    path("schema/", SchemaView.as_view(), name="api-schema"),
    path("schema/ui/", SchemaPageView.as_view(), name="api-reference"),
]
