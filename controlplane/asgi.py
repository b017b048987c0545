"""The web process: console and REST behind one ASGI application. Wiring only."""

# ruff: noqa: E402  what the imports print, and why they fail, is to be a line of the log

import os

from controlplane.log_capture import capture_begin

capture_begin()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application
from prometheus_client import REGISTRY
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from controlplane.api.body_limit import BodyLimit
from controlplane.home import home_create
from controlplane.ops.http_metrics import HttpMetrics
from controlplane.process import open_files_raise, unknown_variables_tell

open_files_raise()
home_create(settings.PARLEY)
_django = get_asgi_application()

from controlplane.ops.web_status import WebStatus

# A body over its limit ends here, before Django would write it to a file.
_limited = BodyLimit(_django, settings.PARLEY.limits)  # type: ignore[arg-type]  # as below
# The scheme and address of a caller, as a proxy reports them, but only one we were told of (resolutions U23).
_proxied = ProxyHeadersMiddleware(
    _limited,  # type: ignore[arg-type]  # the same protocol, which uvicorn describes with types of its own
    [str(each) for each in settings.PARLEY.trusted_proxies],
)
_counted = HttpMetrics(_proxied, REGISTRY)  # type: ignore[arg-type]  # as above
application = WebStatus(_counted, settings.PARLEY.web_metrics_address)

unknown_variables_tell()  # now that there is a log
