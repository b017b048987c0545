"""What an error code means: where the `type` of every problem document leads."""

from typing import Final

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane import errors
from controlplane.api import errors as http
from controlplane.api.answers import json_answer
from controlplane.api.query import Query
from controlplane.api.schema import described
from controlplane.api.shapes.validation import ErrorCodeOut
from controlplane.api.views.base import ApiView, Needs
from controlplane.errors import ControlPlaneError, NotFound
from xdscore.schema import CATALOGUE

_RAISED: Final[tuple[type[ControlPlaneError], ...]] = (
    errors.InputInvalid,
    errors.NotFound,
    errors.Forbidden,
    errors.Conflict,
    errors.PreconditionFailed,
    errors.DependencyError,
    http.Unauthenticated,
    http.MethodRefused,
    http.MediaRefused,
    http.Busy,
    http.InternalError,
)


class ErrorView(ApiView):
    """One code. Open: it says nothing about this installation, and whoever holds an error may hold no token."""

    needs = {"GET": Needs.NOBODY}

    @extend_schema(
        operation_id="error_get",
        summary="Read what an error code means",
        responses=described(200, ErrorCodeOut, 404, 422),
        auth=[],
    )
    def get(self, request: Request, code: str) -> HttpResponse:
        """Its meaning."""
        Query(request, ()).done()
        meaning = _meanings().get(code)
        if meaning is None:
            raise NotFound(f"There is no error code '{code[:20]}'.")
        return json_answer({"code": code, **meaning})


def _meanings() -> dict[str, dict[str, str]]:
    raised = {
        each.code: {"title": each.title, "detail": " ".join((each.__doc__ or "").split()), "hint": ""}
        for each in _RAISED
    }
    found = {row.code: {"title": row.title, "detail": row.detail, "hint": row.hint} for row in CATALOGUE}
    return raised | found
