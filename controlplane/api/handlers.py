"""What Django itself refuses: a path that is none, a host that is not ours, a fault.

Problem documents below `/api/`; everywhere else the pages of Django, which the console may replace by its own.
"""

import sys

from django.http import Http404, HttpRequest, HttpResponse
from django.views import defaults

from controlplane.api.problems import answer_for

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer 400 to a request that Django refuses for its Host header, its other headers, or its number of form
    fields.
    """
    return answer_for(exception) if _is_api(request) else defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer 403, for Django: a problem document under the API's paths, a page elsewhere."""
    return answer_for(exception) if _is_api(request) else defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer 404 for a path that does not exist: a problem document under the API's paths, a page elsewhere."""
    return answer_for(Http404()) if _is_api(request) else defaults.page_not_found(request, exception)


def failed(request: HttpRequest) -> HttpResponse:
    """The answer to a request that ended in an exception: on a page 500; in the API the problem document of the
    exception, which may have another status, such as 503 for a database that cannot be reached.
    """
    error = sys.exc_info()[1]
    if not _is_api(request) or error is None:
        return defaults.server_error(request)
    return answer_for(error, path="middleware")


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(_API)
