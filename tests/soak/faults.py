"""What each kind of fault does. Each is a block: it is broken when the block begins and mended when it has ended.

A stream may end only by a fault that ends streams; `ENDS` says how.
"""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from envoy.config.cluster.v3 import cluster_pb2
from google.protobuf.message import Message

from tests.soak.ground import Ground
from tests.soak.schedule import Kind
from tests.support.data_planes import data_planes
from tests.support.site import KILLED_ENDS, LEAVING_ENDS, REPLICAS, WORKERS
from tests.support.waiting import eventually
from tests.support.watchers import CUT_WHILE_WRITING
from xdsclient import ClientType, InvalidResourceError, standard_type
from xdscore.resource_types import CLUSTER

_BURST = 60
_PATIENCE_S = 30
_HERE = "/environments/default/resources/cluster"
_REFUSED = "refused by the soak"
_ACCEPTED = 202

ENDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.REPLICA_KILLED: KILLED_ENDS,
    Kind.REPLICAS_KILLED: KILLED_ENDS,
    Kind.REPLICA_TERMINATED: LEAVING_ENDS,
    Kind.EVERYTHING_RESTARTED: LEAVING_ENDS,
    Kind.CLIENTS_RECONNECT: ("CANCELLED", CUT_WHILE_WRITING),
}


def _stopped(ground: Ground, *names: str, number: int) -> Iterator[None]:
    parley = ground.site.parley
    for name in names:
        parley.processes[name].send_signal(number)
    for name in names:
        parley.processes[name].wait(_PATIENCE_S)
    yield
    for name in names:
        parley.start(name)
    for name in names:
        if name not in WORKERS:
            parley.ready(name)


def _frozen(ground: Ground, name: str) -> Iterator[None]:
    process = ground.site.parley.processes[name]
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def _worker_killed(ground: Ground, victim: int) -> Iterator[None]:
    return _stopped(ground, WORKERS[victim], number=signal.SIGKILL)


def _workers_killed(ground: Ground, _victim: int) -> Iterator[None]:
    return _stopped(ground, *WORKERS, number=signal.SIGKILL)


def _replica_killed(ground: Ground, victim: int) -> Iterator[None]:
    return _stopped(ground, REPLICAS[victim], number=signal.SIGKILL)


def _replica_terminated(ground: Ground, victim: int) -> Iterator[None]:
    return _stopped(ground, REPLICAS[victim], number=signal.SIGTERM)


def _replicas_killed(ground: Ground, _victim: int) -> Iterator[None]:
    return _stopped(ground, *REPLICAS, number=signal.SIGKILL)


def _web_restarted(ground: Ground, _victim: int) -> Iterator[None]:
    return _stopped(ground, "web", number=signal.SIGTERM)


def _worker_frozen(ground: Ground, victim: int) -> Iterator[None]:
    return _frozen(ground, WORKERS[victim])


def _replica_frozen(ground: Ground, victim: int) -> Iterator[None]:
    return _frozen(ground, REPLICAS[victim])


def _replica_reset(ground: Ground, victim: int) -> Iterator[None]:
    for proxy in ground.proxies[victim]:
        proxy.reset()
    yield
    for proxy in ground.proxies[victim]:
        proxy.heal()


def _replica_silenced(ground: Ground, victim: int) -> Iterator[None]:
    for proxy in ground.proxies[victim]:
        proxy.silence()
    yield
    for proxy in ground.proxies[victim]:
        proxy.heal()


def _redis_killed(ground: Ground, _victim: int) -> Iterator[None]:
    ground.site.redis.kill()
    yield
    ground.site.redis.start()


def _redis_frozen(ground: Ground, _victim: int) -> Iterator[None]:
    ground.site.redis.freeze()
    try:
        yield
    finally:
        ground.site.redis.thaw()


def _database_stopped(ground: Ground, _victim: int) -> Iterator[None]:
    ground.site.database.stop()
    yield
    ground.site.database.start()


def _database_killed(ground: Ground, _victim: int) -> Iterator[None]:
    ground.site.database.kill()
    yield
    ground.site.database.start()


def _database_frozen(ground: Ground, _victim: int) -> Iterator[None]:
    ground.site.database.freeze()
    try:
        yield
    finally:
        ground.site.database.thaw()


def _hints_forged(ground: Ground, _victim: int) -> Iterator[None]:
    ground.site.forge_hints()
    yield


def _burst(ground: Ground, _victim: int) -> Iterator[None]:
    """Changes one after the other as fast as they are taken, each of a cluster that is there."""
    with ground.writer.lock:
        names = sorted(ground.truth.clusters.keys() - ground.truth.unsure)
        for number in range(_BURST):
            ground.writer.write({names[number % len(names)]: ground.writer.fresh_seconds()})
    yield


def _clients_reconnect(ground: Ground, _victim: int) -> Iterator[None]:
    ground.site.fleet.reconnect()
    yield


def _clients_frozen(ground: Ground, _victim: int) -> Iterator[None]:
    ground.site.fleet.freeze()
    try:
        yield
    finally:
        ground.site.fleet.thaw()


def _everything_restarted(ground: Ground, _victim: int) -> Iterator[None]:
    ours = _stopped(ground, "web", *WORKERS, *REPLICAS, number=signal.SIGTERM)
    next(ours)
    ground.site.database.stop()
    ground.site.redis.kill()
    yield
    ground.site.redis.start()
    ground.site.database.start()
    next(ours, None)


def _refusal(ground: Ground, _victim: int) -> Iterator[None]:
    """A new revision that one client refuses: an operator quarantines it, and the fleet is given the one before."""
    call, writer, truth = ground.site.parley.call, ground.writer, ground.truth
    ground.serial += 1
    name, first, second = f"refused-{ground.serial}", writer.fresh_seconds(), writer.fresh_seconds()

    def write(clusters: dict[str, int | None]) -> None:
        assert writer.write(clusters), "a change was not taken though nothing is broken"
        ground.seen += ground.check_locked(0.0)[1]

    def operate(incident: str, action: str) -> None:
        answer = call("POST", f"/incidents/{incident}/{action}", {"reason": "soak"})
        assert answer.status == _ACCEPTED, answer

    with data_planes(f"127.0.0.1:{ground.site.parley.ads_port}") as planes:
        with writer.lock:
            write({name: first})
            eventually(
                lambda: call("GET", f"{_HERE}/{name}/revisions").body["results"],
                lambda revisions: bool(revisions[0]["proven"]),
                within_s=_PATIENCE_S,
            )
            write({name: second})
            planes.start(f"refuser-{ground.serial}", reads=[_refusing(second)]).ask(CLUSTER, name)
            incident = eventually(
                lambda: _incident_of(call("GET", "/incidents?state=open").body, name), within_s=_PATIENCE_S
            )
            operate(incident, "quarantine")
            truth.clusters[name] = first
            ground.seen += ground.check_locked(0.0)[1]
        yield
    with writer.lock:
        operate(incident, "release")
        truth.clusters[name] = second
        ground.seen += ground.check_locked(0.0)[1]
        write({name: None})


def _refusing(seconds: int) -> ClientType[Message]:
    """Clusters, but for the one with this connect timeout."""
    standard = standard_type(CLUSTER)

    def read(data: bytes) -> Message:
        if cluster_pb2.Cluster.FromString(data).connect_timeout.seconds == seconds:
            raise InvalidResourceError(_REFUSED)
        return standard.read(data)

    return ClientType(CLUSTER, read)


def _incident_of(page: Any, name: str) -> str:
    return next((str(each["id"]) for each in page["results"] if each["name"] == name), "")


_FAULTS: Final[Mapping[Kind, Callable[[Ground, int], AbstractContextManager[None]]]] = {
    kind: contextmanager(fault)
    for kind, fault in {
        Kind.WORKER_KILLED: _worker_killed,
        Kind.WORKER_FROZEN: _worker_frozen,
        Kind.WORKERS_KILLED: _workers_killed,
        Kind.REPLICA_KILLED: _replica_killed,
        Kind.REPLICA_TERMINATED: _replica_terminated,
        Kind.REPLICA_FROZEN: _replica_frozen,
        Kind.REPLICAS_KILLED: _replicas_killed,
        Kind.REPLICA_RESET: _replica_reset,
        Kind.REPLICA_SILENCED: _replica_silenced,
        Kind.WEB_RESTARTED: _web_restarted,
        Kind.REDIS_KILLED: _redis_killed,
        Kind.REDIS_FROZEN: _redis_frozen,
        Kind.DATABASE_STOPPED: _database_stopped,
        Kind.DATABASE_KILLED: _database_killed,
        Kind.DATABASE_FROZEN: _database_frozen,
        Kind.HINTS_FORGED: _hints_forged,
        Kind.BURST: _burst,
        Kind.REFUSAL: _refusal,
        Kind.CLIENTS_RECONNECT: _clients_reconnect,
        Kind.CLIENTS_FROZEN: _clients_frozen,
        Kind.EVERYTHING_RESTARTED: _everything_restarted,
    }.items()
}


def fault_of(ground: Ground, kind: Kind, victim: int) -> AbstractContextManager[None]:
    """The block of a fault."""
    return _FAULTS[kind](ground, victim)
