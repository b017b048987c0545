"""What an error code means: where the `type` of every problem document leads."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.api.answers import json_answer
from controlplane.api.query import Query
from controlplane.api.schema import described
from controlplane.api.shapes.validation import ErrorCodeOut
from controlplane.api.views.base import ApiView, Needs
from controlplane.common.errors import NotFound
from xdscore.codes import CATALOGUE


class ErrorView(ApiView):
    """Read the meaning of an error code. Needs no token: it says nothing about this installation."""

    needs = {"GET": Needs.NOBODY}

    @extend_schema(
        operation_id="error_get",
        summary="Read what an error code means",
        responses=described(200, ErrorCodeOut, 404, 422),
        auth=[],
    )
    def get(self, request: Request, code: str) -> HttpResponse:
        """The title, explanation and hint of the error code."""
        Query(request, ()).done()
        row = CATALOGUE.get(code)
        if row is None:
            raise NotFound(f"There is no error code '{code[:20]}'.")
        return json_answer({"code": code, "title": row.title, "detail": row.meaning, "hint": row.hint})


urlpatterns = [
    path("errors/<slug:code>", ErrorView.as_view()),
]
