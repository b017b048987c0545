"""What Django itself refuses: a path that is none, a host that is not ours, a fault.

Problem documents below `/api/`; everywhere else the pages of Django, which the console may replace by its own.
"""

import sys

from django.http import Http404, HttpRequest, HttpResponse
from django.views import defaults

from controlplane.api.problems import answer_for

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer 400 to a request with a host, headers or number of fields that Django refuses."""
    return answer_for(exception) if _is_api(request) else defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer 403: a problem document in the API, a page elsewhere."""
    return answer_for(exception) if _is_api(request) else defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer 404 to a path that does not exist: a problem document in the API, a page elsewhere."""
    return answer_for(Http404()) if _is_api(request) else defaults.page_not_found(request, exception)


def failed(request: HttpRequest) -> HttpResponse:
    """The answer 500; where the exception in flight has a status of its own, that one: a middleware's database error is
    a 503.
    """
    error = sys.exc_info()[1]
    if not _is_api(request) or error is None:
        return defaults.server_error(request)
    return answer_for(error, path="middleware")


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(_API)
