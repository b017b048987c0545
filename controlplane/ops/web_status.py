"""Where a web process tells Prometheus and orchestrators of itself: not under its public name, and whatever the Host.

On the loop that answers people, so that who answers here answers there; what asks the database does so in threads.
"""

import structlog
from django.db import connections
from prometheus_client import CollectorRegistry, generate_latest

from controlplane.config.values import Address
from controlplane.ops.condition_metrics import ConditionCollector
from controlplane.ops.health import condition
from controlplane.ops.http_metrics import Application, Message, Receive, Send
from xdscore.status_http import StatusAddressError, StatusHttp

log = structlog.get_logger(__name__)

# The figures of the whole installation, beside those of this process.
_installation = CollectorRegistry()
_installation.register(ConditionCollector())


class WebStatus:
    """An ASGI application that passes everything on, and runs a status server for as long as the process serves: it
    begins and ends with the lifespan that the web server announces (ASGI's lifespan protocol).
    """

    def __init__(self, application: Application, address: Address) -> None:
        self._application = application
        self._address = address
        self._announced = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on; for the lifespan, run the status server until it ends."""
        if scope["type"] == "lifespan":
            self._announced = True
            await self._live(receive, send)
            return
        if not self._announced:
            self._announced = True  # said once
            log.warning(
                "status.absent",
                detail="Nobody can scrape or probe this process at PARLEY_WEB_METRICS_ADDRESS: "
                "start uvicorn without --lifespan off.",
            )
        await self._application(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()  # the start
        status = StatusHttp(
            role="web",
            host=self._address.host,
            port=self._address.port,
            readiness=lambda: condition().readiness,
            metrics=_metrics,
            waits=True,
        )
        try:
            await status.start()
        except StatusAddressError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()  # the end
        await status.stop()
        await send({"type": "lifespan.shutdown.complete"})


def _metrics() -> bytes:
    try:
        return generate_latest() + generate_latest(_installation)
    finally:
        connections.close_all()  # this thread's own
