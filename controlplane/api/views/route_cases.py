"""Route cases: kept, judged at every change, run when somebody asks, and read from files of router_check_tool."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.http import HttpResponse
from django.urls import path as at
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import empty_answer, json_answer, moment
from controlplane.api.bodies import document_of, located_in, values_of
from controlplane.api.etags import etag, expectation_of
from controlplane.api.pages import OFFSET_PARAMETERS, offset_page, window_of
from controlplane.api.paths import ENVIRONMENT_PATH, path_to
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import (
    CASE_FILTERS,
    CASES_DRY_RUN,
    CASES_IMPORT,
    IF_MATCH,
    JSON,
    PAGE,
    ROUTER_CHECK,
    YAML,
    body_of_shape,
    described,
    page_of,
)
from controlplane.api.shapes.routecases import (
    CasesAppliedOut,
    CasesApplyIn,
    CasesRunIn,
    CasesRunOut,
    RouteCaseIn,
    RouteCaseOut,
)
from controlplane.api.views.base import ApiView, principal_of
from controlplane.common.errors import InputInvalid
from controlplane.routecases.router_check import NOT_A_CASE, cases_in_tests, listed_tests
from controlplane.routecases.selectors import case_get, case_list, case_state, cases_run, drafts_run
from controlplane.routecases.services import CaseWritten, case_create, case_delete, case_update, cases_apply
from controlplane.routecases.values import MAX_CASES, CaseRun, End, RouteCaseDraft, RouteCaseState, draft_from_json
from xdscore.findings import Finding
from xdscore.schema.positions import NO_POSITIONS, path_of
from xdscore.schema.text import Document

_STATES: Final = ("holds", "fails")
_MAX_LISTENER_CHARS: Final = 1_024


class RouteCaseListView(ApiView):
    """List and keep the route cases of an environment."""

    needs = {"GET": Role.VIEWER, "POST": Role.EDITOR}

    @extend_schema(
        operation_id="route_case_list",
        summary="List route cases by name, with how each stands",
        parameters=[*PAGE, *CASE_FILTERS],
        responses=described(200, page_of(RouteCaseOut), 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of the cases, with the end of each by what is written now."""
        query = Query(request, (*OFFSET_PARAMETERS, "state"))
        window = window_of(query)
        state = query.choice("state", _STATES, "")
        query.done()
        rows = case_list(environment_key=environment_key, holds=state == "holds" if state else None)
        return json_answer(offset_page(request, rows, window, lambda row: _case_json(case_state(row))))

    @extend_schema(
        operation_id="route_case_create",
        summary="Keep a request with the end that is expected of it",
        description="It is judged at every change from now on. It may fail now: then it waits for the change that "
        "mends it, and stops none.",
        request=body_of_shape(RouteCaseIn),
        responses=described(201, RouteCaseOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Keep the case in the body."""
        Query(request, ()).done()
        made = case_create(
            environment_key=environment_key,
            draft=draft_from_json(values_of(document_of(request), RouteCaseIn)),
            actor=principal_of(request),
            request_id=request_id(),
        )
        location = path_to("environments", environment_key, "requests", "cases", str(made.id))
        return _case_answer(made, status=201, headers={"Location": location})


class RouteCaseView(ApiView):
    """Read, change and delete one route case."""

    needs = {"GET": Role.VIEWER, "PATCH": Role.EDITOR, "DELETE": Role.EDITOR}

    @extend_schema(
        operation_id="route_case_get",
        summary="Read a route case, with how it stands",
        responses=described(200, RouteCaseOut, 401, 403, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str, route_case_id: int) -> HttpResponse:
        """The case as it is kept, with its revision as ETag."""
        Query(request, ()).done()
        return _case_answer(case_get(environment_key=environment_key, case_id=route_case_id))

    @extend_schema(
        operation_id="route_case_update",
        summary="Change those members of a route case that the body has",
        description="`expect` and `client` are replaced as a whole.",
        parameters=[IF_MATCH],
        request=body_of_shape(RouteCaseIn),
        responses=described(200, RouteCaseOut, 400, 401, 403, 404, 409, 412, 413, 415, 422, 428, 503),
    )
    def patch(self, request: Request, environment_key: str, route_case_id: int) -> HttpResponse:
        """Change the members in the body; the others stay."""
        Query(request, ()).done()
        expect = expectation_of(request, self.environment)
        document = document_of(request)
        kept = case_get(environment_key=environment_key, case_id=route_case_id)
        if isinstance(document.tree, dict):
            document = replace(document, tree={**kept.draft.as_json(), **document.tree})
        changed = case_update(
            environment_key=environment_key,
            case_id=route_case_id,
            draft=draft_from_json(values_of(document, RouteCaseIn)),
            expect=expect,
            actor=principal_of(request),
            request_id=request_id(),
        )
        return _case_answer(changed)

    @extend_schema(
        operation_id="route_case_delete",
        summary="Forget a route case",
        parameters=[IF_MATCH],
        responses=described(204, None, 401, 403, 404, 412, 422, 428, 503),
    )
    def delete(self, request: Request, environment_key: str, route_case_id: int) -> HttpResponse:
        """Delete the case, so that changes are no longer judged by it."""
        Query(request, ()).done()
        case_delete(
            environment_key=environment_key,
            case_id=route_case_id,
            expect=expectation_of(request, self.environment),
            actor=principal_of(request),
            request_id=request_id(),
        )
        return empty_answer(204)


class RouteCasesRunView(ApiView):
    """Judge cases by what is written now."""

    needs = {"POST": Role.VIEWER}

    @extend_schema(
        operation_id="route_case_run",
        summary="Judge the kept cases, some of them, or cases that are not kept",
        description="By the newest revisions, whether or not they are served. Leaves nothing.",
        request=body_of_shape(CasesRunIn),
        responses=described(200, CasesRunOut, 400, 401, 403, 404, 413, 415, 422, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """The end of each case now, and whether that is as expected."""
        Query(request, ()).done()
        values = values_of(document_of(request), CasesRunIn)
        if "cases" in values:
            drafts = [draft_from_json(each) for each in values["cases"]]
            runs = drafts_run(environment_key=environment_key, drafts=drafts)
        else:
            runs = cases_run(environment_key=environment_key, ids=values.get("ids"))
        results = [{"id": run.id, **_run_json(run)} for run in runs]
        return json_answer({"results": results, "fails": _fails(runs)})


class RouteCasesApplyView(ApiView):
    """Keep many cases at once."""

    needs = {"POST": Role.EDITOR}

    @extend_schema(
        operation_id="route_case_apply",
        summary="Keep all these cases, or none: each is created, or replaces the case with its name",
        parameters=[CASES_DRY_RUN],
        request=body_of_shape(CasesApplyIn),
        responses=described(200, CasesAppliedOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Keep the cases in the body; others stay."""
        query = Query(request, ("dry_run",))
        dry_run = query.flag("dry_run")
        query.done()
        drafts = [draft_from_json(each) for each in values_of(document_of(request), CasesApplyIn)["cases"]]
        return _applied(request, environment_key, drafts, dry_run=dry_run)


class RouteCasesImportView(ApiView):
    """Keep the tests of a file of Envoy's router_check_tool as cases."""

    needs = {"POST": Role.EDITOR}

    @extend_schema(
        operation_id="route_case_import",
        summary="Keep the tests of a file of Envoy's router_check_tool as cases",
        description="What no case can say is named in `findings`, test by test; a test whose request no case can make "
        "is not kept. Each case replaces the one with its name.",
        parameters=CASES_IMPORT,
        request={JSON: ROUTER_CHECK, YAML: ROUTER_CHECK},
        responses=described(200, CasesAppliedOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Keep the tests in the body that can be cases."""
        query = Query(request, ("blocking", "dry_run", "listener"))
        dry_run, blocking = query.flag("dry_run"), query.flag("blocking", default=True)
        listener = query.text("listener", at_most=_MAX_LISTENER_CHARS)
        query.done()
        document = document_of(request)
        drafts, findings = _imported(document, listener=listener, blocking=blocking)
        return _applied(request, environment_key, drafts, findings, dry_run=dry_run)


def _imported(document: Document, *, listener: str, blocking: bool) -> tuple[list[RouteCaseDraft], tuple[Finding, ...]]:
    """The cases in a file of tests, and findings, with their places, about what no case can say."""
    tests = listed_tests(document.tree)
    if not tests:
        raise InputInvalid("The body holds no tests: a list of them, or an object with 'tests'. Nothing was changed.")
    if len(tests) > MAX_CASES:
        raise InputInvalid(f"The body holds {len(tests):,} tests; at most {MAX_CASES:,} are kept. Nothing was changed.")
    within = "" if isinstance(document.tree, list) else "tests"
    read = cases_in_tests(tests, listener=listener, blocking=blocking, within=within)
    drafts: list[RouteCaseDraft] = []
    findings = list(read.findings)
    for pointer, case in read.cases:
        try:
            drafts.append(draft_from_json(values_of(Document(case, 0, NO_POSITIONS), RouteCaseIn)))
        except InputInvalid as error:
            problem = "; ".join(each.detail.removesuffix(".") for each in error.findings)
            findings.append(NOT_A_CASE.finding(pointer, test=case["name"], problem=problem))
    placed = sorted(((path_of(each.pointer, document.tree), each) for each in findings), key=lambda pair: pair[0])
    return drafts, tuple(located_in(document, path, finding) for path, finding in placed)


def _applied(
    request: Request,
    environment_key: str,
    drafts: Sequence[RouteCaseDraft],
    findings: Iterable[Finding] = (),
    *,
    dry_run: bool,
) -> HttpResponse:
    written = cases_apply(
        environment_key=environment_key,
        drafts=drafts,
        actor=principal_of(request),
        dry_run=dry_run,
        request_id=request_id(),
    )
    return json_answer(
        {
            "dry_run": dry_run,
            "results": [_written_json(each) for each in written],
            "fails": _fails([each.run for each in written]),
            "findings": [finding_json(each) for each in findings],
        }
    )


def _fails(runs: Iterable[CaseRun]) -> int:
    return sum(not run.holds for run in runs)


def _written_json(each: CaseWritten) -> dict[str, object]:
    return {"written": each.written.value, **_run_json(each.run)}


def _run_json(run: CaseRun) -> dict[str, object]:
    return {"name": run.draft.name, "holds": run.holds, "end": _end_json(run.end)}


def _case_answer(state: RouteCaseState, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return json_answer(_case_json(state), status=status, headers={"ETag": etag(state.revision), **(headers or {})})


def _case_json(state: RouteCaseState) -> dict[str, object]:
    return {
        "id": state.id,
        **state.draft.as_json(),
        "revision": state.revision,
        "created_by": state.created_by,
        "created_at": moment(state.created_at),
        "author": state.author,
        "updated_at": moment(state.updated_at),
        "holds": state.holds,
        "since": state.since or None,
        "end": _end_json(state.end),
    }


def _end_json(end: End) -> dict[str, object]:
    return {
        "answer": end.answer.value,
        "listener": end.listener or None,
        "route": end.route or None,
        "virtual_host": end.virtual_host or None,
        "route_name": end.route_name or None,
        "weighted": [{"cluster": each.cluster, "percent": each.percent} for each in end.shares],
        "status": end.status or None,
        "location": end.location or None,
        "text": end.said,
    }


_PATH: Final = f"{ENVIRONMENT_PATH}/requests/cases"
urlpatterns = [
    at(_PATH, RouteCaseListView.as_view()),
    at(f"{_PATH}/<int:route_case_id>", RouteCaseView.as_view()),
    at(f"{_PATH}/apply", RouteCasesApplyView.as_view()),
    at(f"{_PATH}/import", RouteCasesImportView.as_view()),
    at(f"{_PATH}/run", RouteCasesRunView.as_view()),
]
_EXAMPLE: Final[dict[str, Any]] = {
    "name": "checkout pays",
    "scheme": "https",
    "authority": "shop.example",
    "path": "/pay",
    "headers": {"x-canary": "1"},
    "expect": {"answer": "routed", "cluster": "pay"},
}
EXAMPLES = {
    "route_case_create": _EXAMPLE,
    "route_case_update": {"expect": {"answer": "routed", "cluster": "pay-v2"}},
    "route_case_run": {"cases": [_EXAMPLE]},
    "route_case_apply": {"cases": [_EXAMPLE]},
    "route_case_import": {
        "tests": [
            {
                "test_name": "checkout pays",
                "input": {"authority": "shop.example", "path": "/pay", "method": "GET", "ssl": True},
                "validate": {"cluster_name": "pay", "virtual_host_name": "shop"},
            }
        ]
    },
}
