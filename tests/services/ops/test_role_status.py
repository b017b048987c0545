"""What web, worker and beat say of themselves, and how a status server lives beside their work."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import OperationalError

from controlplane.config.values import Address
from controlplane.ops import web_status, worker_status
from controlplane.ops.beat_status import Sending
from controlplane.ops.health import Condition
from controlplane.ops.http_metrics import Message, Receive, Send
from controlplane.ops.web_status import WebStatus
from controlplane.ops.worker_status import Watched
from tests.support.ports import free_ports
from xdscore.status_http import Readiness

ROOT = Path(__file__).parents[3]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the worker hears of its broker."""
    said = ["ok"]
    monkeypatch.setattr("controlplane.ops.worker_status.probe.state", lambda: said[0])
    return said


def test_worker__looks_fails_and_falls_silent__ready_only_while_it_looks(clock: Clock) -> None:
    failing: list[Exception] = []

    def look() -> None:
        if failing:
            raise failing[0]

    watched = Watched(look, clock)
    before = watched.readiness()
    watched()
    looking = watched.readiness()
    failing.append(OperationalError("secret of the database"))
    for _ in range(2):
        with pytest.raises(OperationalError):
            watched()
        clock.now += 5
    broken = watched.readiness()
    failing.clear()
    watched()
    clock.now += worker_status.SILENT_S + 1

    assert before.reasons == ("starting: changes to build were not looked for yet",)
    assert looking == Readiness()
    assert broken.reasons == ("looking for changes to build fails since 10 s; the log says why (sweep.failed)",)
    assert watched.readiness().reasons == ("changes to build were last looked for 121 s ago",)


def test_worker__without_a_broker__is_ready_and_degraded(clock: Clock, broker: list[str]) -> None:
    watched = Watched(lambda: None, clock)
    watched()
    broker[0] = "does not answer"

    assert watched.readiness() == Readiness(warnings=("broker: does not answer",))


def test_worker__job_that_is_watched__keeps_its_name_in_the_log() -> None:
    watched = Watched(test_worker__job_that_is_watched__keeps_its_name_in_the_log)

    assert getattr(watched, "__qualname__", "") == "test_worker__job_that_is_watched__keeps_its_name_in_the_log"


def test_beat__sends_and_falls_silent__ready_only_while_it_sends(clock: Clock) -> None:
    sending = Sending(clock)
    clock.now += 7
    before = sending.readiness()
    sending.sent(sender="digest")
    sent = sending.readiness()
    clock.now += 31

    assert before.reasons == ("nothing was sent yet, for 7 s: does the broker answer (REDIS_URL)?",)
    assert sent == Readiness()
    assert sending.readiness().reasons == ("nothing was sent for 31 s: does the broker answer (REDIS_URL)?",)


def test_web__parts_that_only_cost_time__are_warnings() -> None:
    late = "a change waits for a build since 90 s; is a worker running?"
    slow = Condition(parts=(("database", "ok"), ("broker", "does not answer"), ("worker", late)))

    assert slow.readiness == Readiness(warnings=("broker: does not answer", f"worker: {late}"))
    assert Condition(("the database does not answer",)).readiness.reasons == ("the database does not answer",)


async def test_web__started_without_a_lifespan__says_once_that_nobody_can_scrape_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served: list[str] = []

    async def application(scope: Message, _receive: Receive, _send: Send) -> None:
        served.append(scope["type"])

    async def nothing() -> Message:
        return {"type": "http.disconnect"}

    async def nowhere(_message: Message) -> None:
        pass

    web = WebStatus(application, Address("127.0.0.1", 1))
    for _ in range(2):
        await web({"type": "http"}, nothing, nowhere)

    assert served == ["http", "http"]
    (record,) = caplog.records
    assert isinstance(record.msg, dict)
    assert record.msg["event"] == "status.absent"


async def test_web__address_is_taken__its_server_is_told_why_it_cannot_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = await _lived(WebStatus(_never, Address("127.0.0.1", port)), ["lifespan.startup"])

    (message,) = told
    assert message["type"] == "lifespan.startup.failed"
    assert f"127.0.0.1:{port} (PARLEY_WEB_METRICS_ADDRESS) cannot be used" in message["message"]


async def test_web__starts_and_stops__its_address_is_free_again() -> None:
    (port,) = free_ports(1)

    told = await _lived(WebStatus(_never, Address("127.0.0.1", port)), ["lifespan.startup", "lifespan.shutdown"])

    assert [each["type"] for each in told] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.django_db
def test_web__scraped_in_a_thread__gives_its_connections_back(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    monkeypatch.setattr("controlplane.ops.web_status.connections.close_all", lambda: closed.append(True))

    page = web_status._metrics()

    assert closed == [True]
    assert b"\nprocess_resident_memory_bytes " in page
    assert b"\nparley_database_up " in page


FORKS = """
import os, sys, time, urllib.request
from controlplane.ops.status_thread import StatusThread
from controlplane.config.values import Address
from xdscore.status_http import Readiness

port = int(sys.argv[1])
StatusThread("worker", Address("127.0.0.1", port), Readiness).listen()
if os.fork() == 0:
    print(os.getpid(), flush=True)
    os.close(1)
    time.sleep(60)
    os._exit(0)
page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read()
os._exit(0 if b"parley_worker_ready 1.0" in page else 1)
"""


def test_process__that_forks_and_dies__leaves_its_address_free_while_its_child_lives() -> None:
    (port,) = free_ports(1)

    parent = subprocess.run(
        [sys.executable, "-c", FORKS, str(port)], cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    child = int(parent.stdout)
    try:
        os.kill(child, 0)
        socket.create_server(("127.0.0.1", port)).close()
    finally:
        os.kill(child, signal.SIGKILL)


async def _never(_scope: Message, _receive: Receive, _send: Send) -> None:
    raise AssertionError("nobody asks")


async def _lived(web: WebStatus, announced: list[str]) -> list[Message]:
    """What an application says to the events of its life."""
    told: list[Message] = []

    async def receive() -> Message:
        return {"type": announced.pop(0)}

    async def send(message: Message) -> None:
        told.append(message)

    await web({"type": "lifespan"}, receive, send)
    return told
