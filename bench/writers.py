"""Pipelines that write clusters over REST, so many at once, each on a connection of its own."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count
from typing import Final
from urllib.parse import urlsplit

from bench.resources import cluster, cluster_name
from bench.whole import Whole

_PATIENCE_S: Final = 60.0
_WRITERS: Final = 8
_FIRST_VALUE: Final = 10  # seconds: no version of a cluster that was there before has such a timeout


@dataclass(frozen=True, slots=True)
class Written:
    """A write of the cluster with this number: `value` is its connect timeout, in seconds, which no other write has and
    which grows; `answered`: when the answer came, by the monotonic clock; `took_s`: how long the request took.
    """

    number: int
    value: int
    answered: float
    took_s: float


class Writers:
    """Writes versions of `clusters` clusters in turn, on behalf of all writers of one scenario.

    Each cluster has one writer, which waits for its answer: of two requests at the same time the older may be the later
    one to arrive, and then what is there at the end is the older version, rightly.
    """

    def __init__(self, parley: Whole, *, clusters: int) -> None:
        self._requests = Requests(parley.web, parley.token)
        self._clusters = clusters
        self._places = count()
        self._value = _FIRST_VALUE
        self._lock = threading.Lock()
        self._own = _OfThread()

    def steadily(self, *, per_s: float, seconds: float, batch: int = 1) -> list[Written]:
        """Send `per_s` requests a second for so long, each of which writes `batch` clusters; as many as the server
        answers where that are fewer. Returns what was written once all are answered.
        """
        began = time.monotonic()

        def write(turn: int) -> list[Written]:
            time.sleep(max(0.0, began + turn / per_s - time.monotonic()))
            return self._write(batch)

        with ThreadPoolExecutor(_WRITERS) as writers:
            return [each for written in writers.map(write, range(round(per_s * seconds))) for each in written]

    def flat_out(self, *, writers: int, seconds: float) -> list[Written]:
        """Let so many writers send one request after the other for so long; returns what was written."""
        until = time.monotonic() + seconds

        def write(_: int) -> list[Written]:
            found = []
            while time.monotonic() < until:
                found += self._write(1)
            return found

        with ThreadPoolExecutor(writers) as pool:
            return [each for written in pool.map(write, range(writers)) for each in written]

    def _write(self, batch: int) -> list[Written]:
        own = self._own
        with self._lock:
            values = range(self._value, self._value + batch)
            self._value += batch
            if own.place is None:
                own.place = next(self._places) % _WRITERS
        mine = range(own.place, self._clusters, _WRITERS)
        numbers = [mine[turn * 7 % len(mine)] for turn in range(own.turn, own.turn + batch)]
        own.turn += batch
        manifests = [cluster(number, timeout_s=value) for number, value in zip(numbers, values, strict=True)]
        began = time.monotonic()
        if batch == 1:
            self._requests.write(
                "PUT", f"/environments/default/resources/cluster/{cluster_name(numbers[0])}", manifests[0]
            )
        else:
            self._requests.write("POST", "/environments/default/apply", {"resources": manifests})
        answered = time.monotonic()
        return [Written(*pair, answered, answered - began) for pair in zip(numbers, values, strict=True)]


class Requests:
    """Sends requests to the REST API, each thread on a connection of its own. `web`: the API's URL; `token`: an API
    token.
    """

    def __init__(self, web: str, token: str) -> None:
        self._address = urlsplit(web)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._own = threading.local()

    def write(self, method: str, path: str, body: object) -> dict[str, object]:
        """Send a request that writes, again and again while the server is busy; returns the change. Raises RuntimeError
        when it is refused.
        """
        until = time.monotonic() + _PATIENCE_S
        while True:
            connection = getattr(self._own, "connection", None)
            if connection is None:
                connection = http.client.HTTPConnection(self._address.netloc, timeout=_PATIENCE_S)
                self._own.connection = connection
            try:
                connection.request(method, self._address.path + path, json.dumps(body), self._headers)
                answer = connection.getresponse()
                said = answer.read()
            except ConnectionError:  # the server ends what was idle for some seconds
                connection.close()
                if time.monotonic() > until:
                    raise
                continue
            if answer.status == HTTPStatus.ACCEPTED:
                return dict(json.loads(said))
            if answer.status != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > until:
                raise RuntimeError(f"{method} {path} was answered {answer.status}: {said[:500]!r}")
            time.sleep(float(answer.headers["Retry-After"]))


class _OfThread(threading.local):
    """What a writer has for itself: which of the clusters are its own, and how many it wrote."""

    place: int | None = None
    turn: int = 0


def latencies_ms(
    written: Sequence[Written], seen: Sequence[tuple[int, str, int, float]], wants: Callable[[int], Sequence[int]]
) -> list[float]:
    """How many milliseconds after the answer to each write each client that `wants` the number had it, or something
    newer. `seen`: (client, name, value, time) of each resource that a client received. Raises RuntimeError where a
    client never had it.
    """
    received: dict[tuple[int, str], list[tuple[int, float]]] = {}
    for client, name, value, at in sorted(seen, key=lambda each: each[3]):
        received.setdefault((client, name), []).append((value, at))
    found = []
    for write in written:
        for client in wants(write.number):
            versions = received.get((client, cluster_name(write.number)), ())
            times = [at for value, at in versions if value >= write.value]
            if not times:
                raise RuntimeError(f"client {client} never had version {write.value} of cluster {write.number}")
            found.append(max(0.0, times[0] - write.answered) * 1000)
    return found
