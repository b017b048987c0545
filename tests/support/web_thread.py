"""The console and the API over HTTP, in a thread of this process and on the database of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn

from tests.support.waiting import eventually

_START_S: Final = 30.0


@contextmanager
def serving_web() -> Iterator[str]:
    """Run the web application in a thread until the block ends; yields its address, as `http://127.0.0.1:PORT`."""
    from controlplane.ops.web import application  # noqa: PLC0415 - the settings must be loaded first

    server = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=0, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started, within_s=_START_S)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_START_S)
