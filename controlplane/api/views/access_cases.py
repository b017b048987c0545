"""Access rules tried before they are needed: cases, saved cases, and a review of the rules as a whole."""

from typing import Any, Final

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.access.cases import case_create, case_delete
from controlplane.access.choices import EditSubject
from controlplane.access.selectors import case_list, case_state, cases_try, client_json, edit_done, edit_list
from controlplane.access.values import Case, CaseResult, EditDone, SavedCase
from controlplane.accounts.principal import Role
from controlplane.api.answers import empty_answer, json_answer, moment
from controlplane.api.bodies import bulk_within_limit, document_of, values_of
from controlplane.api.pages import OFFSET_PARAMETERS, counted_page, offset_page, window_of
from controlplane.api.paths import ENVIRONMENT_PATH, path_to
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import ACCESS_HISTORY_FILTERS, PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.access import AccessEditOut, ReviewOut, SavedCaseIn, SavedCaseOut, TestIn, TestOut
from controlplane.api.views.base import ApiView, principal_of
from controlplane.explain.selectors import rules_review
from xdscore.access import Effect
from xdscore.environment_choice import ClientFacts

# The largest id a database gives.
_MAX_ID = 2**63 - 1


class AccessTestView(ApiView):
    """Try what the access rules would decide for clients that are described in the request."""

    needs = {"POST": Role.VIEWER}

    @extend_schema(
        operation_id="access_test",
        summary="Say what clients would be told, and by which rule",
        description="By the rules as they are written now, with the code that decides for streams. Leaves nothing.",
        request=body_of_shape(TestIn),
        responses=described(200, TestOut, 400, 401, 403, 404, 413, 415, 422, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Try the cases of the body against the rules as they are now."""
        Query(request, ()).done()
        document = document_of(request)
        bulk_within_limit(document, "cases")
        values = values_of(document, TestIn)
        results = cases_try(environment_key=environment_key, cases=tuple(_case(each) for each in values["cases"]))
        return json_answer({"results": [_result_json(result) for result in results]})


class CaseListView(ApiView):
    """List and create the saved cases of an environment."""

    needs = {"GET": Role.VIEWER, "POST": Role.ACCESS_EDITOR}

    @extend_schema(
        operation_id="access_case_list",
        summary="List the saved cases, with what the rules say of each now",
        parameters=PAGE,
        responses=described(200, page_of(SavedCaseOut), 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of the saved cases, oldest first, with the result of each."""
        query = Query(request, OFFSET_PARAMETERS)
        window = window_of(query)
        query.done()
        saved = [case_state(row) for row in case_list(environment_key=environment_key)]
        shown = saved[window.offset : window.offset + window.limit]
        results = cases_try(environment_key=environment_key, cases=tuple(each.case for each in shown))
        items = [_saved_json(each, result) for each, result in zip(shown, results, strict=True)]
        return json_answer(counted_page(request, items, window, len(saved)))

    @extend_schema(
        operation_id="access_case_create",
        summary="Keep a case, to be tried at every change of the rules",
        request=body_of_shape(SavedCaseIn),
        responses=described(201, SavedCaseOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Save a case, which is then tried at every change of the rules."""
        Query(request, ()).done()
        values = values_of(document_of(request), SavedCaseIn)
        saved = case_create(
            environment_key=environment_key,
            case=_case(values),
            blocking=values["blocking"],
            actor=principal_of(request),
            request_id=request_id(),
        )
        [result] = cases_try(environment_key=environment_key, cases=(saved.case,))
        location = path_to("environments", environment_key, "access", "cases", str(saved.id))
        return json_answer(_saved_json(saved, result), status=201, headers={"Location": location})


class CaseView(ApiView):
    """Delete one saved case."""

    needs = {"DELETE": Role.ACCESS_EDITOR}

    @extend_schema(
        operation_id="access_case_delete",
        summary="Forget a saved case",
        responses=described(204, None, 401, 403, 404, 422, 503),
    )
    def delete(self, request: Request, environment_key: str, case_id: int) -> HttpResponse:
        """Delete the saved case, so that changes of the rules are no longer tried against it."""
        Query(request, ()).done()
        case_delete(
            environment_key=environment_key, case_id=case_id, actor=principal_of(request), request_id=request_id()
        )
        return empty_answer(204)


class AccessReviewView(ApiView):
    """Read the findings about access rules that can never decide anything."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="access_review",
        summary="Find rules that never decide: shadowed ones, and those that speak of no known client",
        responses=described(200, ReviewOut, 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """The findings about the rules as they are now. Whether a group has any client is judged by the clients that
        Parley knows.
        """
        Query(request, ()).done()
        findings = rules_review(environment_key=environment_key)
        return json_answer({"findings": [finding_json(finding) for _, finding in findings]})


class AccessHistoryView(ApiView):
    """Read the history of an environment's client groups and access rules."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="access_history",
        summary="List what was done to client groups and access rules, newest first",
        parameters=[*PAGE, *ACCESS_HISTORY_FILTERS],
        responses=described(200, page_of(AccessEditOut), 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of the history of groups and rules, newest first."""
        query = Query(request, (*OFFSET_PARAMETERS, "subject", "id"))
        window = window_of(query)
        subject = query.choice("subject", [each.value for each in EditSubject], "")
        subject_id = query.whole("id", 0, minimum=1, maximum=_MAX_ID)
        query.done()
        rows = edit_list(
            environment_key=environment_key,
            subject=EditSubject(subject) if subject else None,
            subject_id=subject_id or None,
        )
        return json_answer(offset_page(request, rows, window, lambda row: _edit_json(edit_done(row))))


def _case(values: dict[str, Any]) -> Case:
    facts = {field: values[field] for field in ("identity", "node_id", "node_cluster", "metadata") if field in values}
    return Case(ClientFacts(**facts), values["type"], values["name"], Effect(values["expect"]))


def _result_json(result: CaseResult) -> dict[str, object]:
    return {
        "ok": result.ok,
        "effect": result.effect.value,
        "rule": result.rule or None,
        "message": result.message,
    }


def _saved_json(saved: SavedCase, result: CaseResult) -> dict[str, object]:
    case = saved.case
    return {
        "id": saved.id,
        **client_json(case.client),
        "type": case.type,
        "name": case.name,
        "expect": case.expect.value,
        "blocking": saved.blocking,
        "result": _result_json(result),
    }


def _edit_json(edit: EditDone) -> dict[str, object]:
    return {
        "change": edit.change_id,
        "author": edit.author,
        "author_id": edit.principal or None,
        "at": moment(edit.at),
        "subject": edit.subject.value,
        "id": edit.subject_id,
        "action": edit.action.value,
        "before": edit.before,
        "after": edit.after,
    }


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/access/test", AccessTestView.as_view()),
    path(f"{ENVIRONMENT_PATH}/access/cases", CaseListView.as_view()),
    path(f"{ENVIRONMENT_PATH}/access/cases/<int:case_id>", CaseView.as_view()),
    path(f"{ENVIRONMENT_PATH}/access/review", AccessReviewView.as_view()),
    path(f"{ENVIRONMENT_PATH}/access/history", AccessHistoryView.as_view()),
]
_CASE_EXAMPLE: Final[dict[str, Any]] = {
    "identity": "spiffe://corp/ns/pay/sa/checkout",
    "type": "cluster",
    "name": "pay",
    "expect": "deny",
}
EXAMPLES = {
    "access_test": {"cases": [_CASE_EXAMPLE]},
    "access_case_create": {**_CASE_EXAMPLE, "blocking": True},
}
