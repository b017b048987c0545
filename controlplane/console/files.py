"""Manifests out: a file that `xdsctl apply`, the API and other environments take."""

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone

from controlplane.catalog.manifests import exported_of
from controlplane.catalog.models import Resource
from controlplane.catalog.selectors import resource_content
from controlplane.catalog.services import secrets_read_record
from controlplane.console.pages import Page
from controlplane.console.resources import ResourcesPage, rows_asked
from xdscore.resource_types import SECRET
from xdscore.schema.yaml_out import yaml_of


class ExportPage(Page):
    """The download of resources as one YAML file; secrets are left out."""

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The YAML file with the resources that fit the filters in the URL."""
        asked = ResourcesPage.frame.read(request.GET, timezone.now())
        asked.require()
        rows = rows_asked(environment_key, asked, contents=True)
        secrets = list(rows.filter(type=SECRET.word).values_list("name", flat=True))
        if secrets:
            secrets_read_record(
                environment_key=environment_key, names=secrets, actor=self.principal, request_id=self.request_id
            )
        # Not streamed: under ASGI Django would gather what is made piece by piece as well, and warn about it.
        answer = HttpResponse(_manifests(list(rows), environment_key), content_type="application/yaml")
        file = f"{environment_key}-{timezone.now():%Y%m%d-%H%M%S}.yaml"
        answer["Content-Disposition"] = f'attachment; filename="{file}"'
        answer["Cache-Control"] = "private, no-store"
        return answer


def _manifests(rows: list[Resource], environment_key: str) -> Iterator[str]:
    if not rows:
        yield "[]\n"
    for row in rows:
        yield yaml_of([exported_of(resource_content(row, environment_key=environment_key))])


urlpatterns = [
    path("e/<str:environment_key>/export", ExportPage.as_view(), name="export"),
]
