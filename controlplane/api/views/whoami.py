"""Who asks, and what they may: the rights that the caller has at this moment."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer
from controlplane.api.query import Query
from controlplane.api.schema import described
from controlplane.api.shapes.people import WhoamiOut
from controlplane.api.views.base import ApiView, Needs, principal_of


class WhoamiView(ApiView):
    """Read who you are and what you may."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="whoami",
        summary="Read who you are, and what you may where",
        responses=described(200, WhoamiOut, 401, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """The caller's name, id, and rights: a personal token has what its person has too, and no more."""
        Query(request, ()).done()
        principal = principal_of(request)
        return json_answer(
            {
                "name": principal.name,
                "id": str(principal.id),
                "scopes": [
                    {
                        "role": scope.role.value,
                        "environment": scope.environment,
                        "limits": [limit.as_json() for limit in scope.limits],
                    }
                    for scope in principal.scopes
                ],
            }
        )


urlpatterns = [
    path("whoami", WhoamiView.as_view()),
]
