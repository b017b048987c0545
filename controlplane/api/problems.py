"""Every refusal as one RFC 9457 problem document (texts.md section 4, "Conventions").

`problem` renders what Parley itself raises; `answer_for` knows what everybody else may raise: Django, DRF, the database
driver and Python's own recursion limit. What it does not know is a fault of ours: 500, and the reason goes to the log,
never to the caller.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

import structlog
from django.conf import settings
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from rest_framework import exceptions as drf

from controlplane.api.errors import AnswerLost, InternalError, MethodRefused, ToldOnce, Unauthenticated
from controlplane.api.requests import request_id
from controlplane.catalog.freezes import WriteFrozen
from controlplane.catalog.guarding import CasesBroken, LossRefused
from controlplane.common.errors import (
    Busy,
    Conflict,
    ControlPlaneError,
    DependencyError,
    Forbidden,
    InputInvalid,
    InputTooLarge,
    InputUnreadable,
    NotFound,
    Occupied,
    PreconditionFailed,
)
from xdscore.findings import Finding, Severity

CONTENT_TYPE: Final = "application/problem+json"
MAX_ERRORS: Final = 200  # texts.md section 4: more are counted, not shown
RETRY_AFTER_S: Final = 2  # a database that restarts, or a writer that holds SQLite's lock

log = structlog.get_logger(__name__)


def problem(error: ControlPlaneError) -> HttpResponse:
    """The problem document for an error, with the headers that belong to its status, such as Retry-After."""
    response = document(
        status=error.status,
        code=error.code,
        title=error.title,
        detail=error.detail,
        findings=_refusing(error.findings),
        more=_more(error),
    )
    for name, value in _headers(error).items():
        response[name] = value
    return response


def _more(error: ControlPlaneError) -> Mapping[str, object]:
    """The members that only problem documents of this error have."""
    match error:
        case LossRefused():
            return {"loss": error.loss.as_json()}
        case CasesBroken():
            return {"broken": error.broken}
        case WriteFrozen():
            return {"freeze": error.frozen.as_json()}
        case _:
            return {}


def document(
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    findings: Sequence[Finding] = (),
    more: Mapping[str, object] = MappingProxyType({}),
) -> HttpResponse:
    """A problem document (RFC 9457); `more` are members that only errors of this code have. Its `instance` is the
    request's id, by which logs and audit can be searched.
    """
    members: dict[str, object] = {
        "type": error_url(code),
        "title": title,
        "status": status,
        "detail": detail,
        "instance": f"/requests/{request_id()}",
        "code": code,
        "errors": [finding_json(finding) for finding in findings[:MAX_ERRORS]],
        **more,
    }
    if len(findings) > MAX_ERRORS:
        members["errors_omitted"] = len(findings) - MAX_ERRORS
        members["detail"] = f"{detail} {len(findings)} problems were found; the first {MAX_ERRORS} are listed."
    body = json.dumps(members, ensure_ascii=False).encode("utf-8", "replace")
    return HttpResponse(body, status=status, content_type=CONTENT_TYPE)


def error_url(code: str) -> str:
    """The URL of the page that explains an error code."""
    return f"{settings.PARLEY.public_url}/api/v1/errors/{code}"


def finding_json(finding: Finding) -> dict[str, object]:
    """A finding as a JSON object for `errors` or `findings`; what is not known is left out."""
    known: dict[str, object] = {"code": finding.code, "severity": finding.severity.value, "pointer": finding.pointer}
    if finding.line:
        known |= {"line": finding.line, "column": finding.column}
    if finding.resource_type or finding.resource_name:
        known["resource"] = {"type": finding.resource_type, "name": finding.resource_name}
    known["detail"] = finding.detail
    if finding.hint:
        known["hint"] = finding.hint
    return known


def answer_for(error: BaseException, *, path: str = "") -> HttpResponse:
    """The problem document for any exception. An exception that is no error of ours is logged with its stack and
    answered as InternalError. `path`: the name of the view for that log line.
    """
    known = _known(error)
    if known is not None:
        return problem(known)
    # The stack goes to the log. `path` names the view, not the caller's data.
    log.error("request.failed", path=path, exc_info=error)
    return problem(InternalError("Parley failed to answer this request. Its log says why, under this request's id."))


def _known(error: BaseException) -> ControlPlaneError | None:  # noqa: PLR0911  a table: one line for each kind
    match error:
        case ControlPlaneError():
            return error
        case drf.APIException():
            return _of_framework(error)
        case Http404():
            return NotFound("There is nothing at this path.")
        case RequestDataTooBig():
            return InputTooLarge("The body is larger than any request may be.")
        case PermissionDenied():
            return Forbidden("The request was refused.")
        case SuspiciousOperation() | BadRequest():
            return InputUnreadable("The request is malformed: its host, path or headers cannot be accepted.")
        case RecursionError():
            return InputUnreadable("The body is nested too deeply to be read.")
        case DatabaseError() | InterfaceError():
            return _of_database(error)
        case _:
            return None


def _of_framework(error: drf.APIException) -> ControlPlaneError:
    match error:
        case drf.NotAuthenticated() | drf.AuthenticationFailed():
            return Unauthenticated(str(error.detail))
        case drf.MethodNotAllowed():
            return MethodRefused(str(error.detail), allowed=())
        case drf.PermissionDenied():
            return Forbidden(str(error.detail))
        case drf.NotFound():
            return NotFound("There is nothing at this path.")
        case _:
            return InputUnreadable(str(error.detail))


def _of_database(error: DatabaseError | InterfaceError) -> ControlPlaneError | None:
    match error:
        case OperationalError() | InterfaceError():
            log.warning("database.unavailable", reason=str(error))
            return DependencyError("The database does not answer in time. Nothing was changed; send the request again.")
        case DataError():
            return InputInvalid(
                "A value cannot be stored: it is too long, or holds a character that no database takes."
            )
        case IntegrityError():
            return Conflict(
                "Somebody else wrote the same thing at the same moment. Nothing was changed; read it again."
            )
        case _:
            return None


def _refusing(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def _headers(error: ControlPlaneError) -> Mapping[str, str]:  # noqa: PLR0911 - one of each
    match error:
        case Unauthenticated():
            return {"WWW-Authenticate": 'Bearer realm="parley"'}  # RFC 9110 section 11.6.1, RFC 6750 section 3
        case MethodRefused():
            return {"Allow": ", ".join(error.allowed)}
        case PreconditionFailed(etag=etag) if etag:
            return {"ETag": etag}
        case ToldOnce(location=location) | AnswerLost(location=location) if location:
            return {"Location": location}
        case Busy() | Occupied():
            return {"Retry-After": str(error.retry_after_s)}
        case DependencyError():
            return {"Retry-After": str(RETRY_AFTER_S)}
        case _:
            return {}


def reason_of(status: int) -> str:
    """The standard phrase of an HTTP status, such as "Not Found"."""
    return HTTPStatus(status).phrase
