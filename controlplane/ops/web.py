"""Console and REST as one ASGI application. Wiring only; whoever imports it serves nobody yet (`asgi` does)."""

from django.conf import settings
from django.core.asgi import get_asgi_application
from prometheus_client import REGISTRY
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from controlplane.api.body_limit import BodyLimit
from controlplane.ops.http_metrics import HttpMetrics
from controlplane.ops.kept_threads import KeptThreads

_django = get_asgi_application()

from controlplane.ops.web_status import WebStatus  # noqa: E402  needs Django, which is set up now

_threaded = KeptThreads(_django)
# A body over its limit ends here, before Django would write it to a file.
_limited = BodyLimit(_threaded, settings.PARLEY.limits)
# The scheme and address of a caller, as a proxy reports them, but only one we were told of (decisions U23).
_proxied = ProxyHeadersMiddleware(
    _limited,  # type: ignore[arg-type]  # the same protocol, which uvicorn describes with types of its own
    [str(each) for each in settings.PARLEY.trusted_proxies],
)
_counted = HttpMetrics(_proxied, REGISTRY)  # type: ignore[arg-type]  # as above
application = WebStatus(_counted, settings.PARLEY.web_metrics_address)
