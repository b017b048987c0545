"""What a data plane would see: bootstraps from command lines, and `xdsclient` run for the time of one command.

Only the commands that speak xDS load this; grpcio is an extra of xdsctl (decisions C26).
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import Message

from xdsclient import (
    Authority,
    Bootstrap,
    BootstrapError,
    CacheState,
    ClientType,
    DataErrorHandling,
    FromEnvironment,
    Insecure,
    InvalidResourceError,
    Node,
    Server,
    ServerFeature,
    Status,
    Tls,
    Variant,
    XdsClient,
    standard_type,
)
from xdsclient.dependencies import DependencyManager
from xdsclient.names import UnwatchableNameError
from xdsclient.xds_config import ClusterConfig, EndpointConfig, XdsConfig
from xdscore.names import XDSTP, xdstp_authority
from xdscore.resource_types import LISTENER, ResourceType, by_url, by_word
from xdsctl.ears import CollectionEar, ear_of, rows_of
from xdsctl.exits import JsonObject, NoAnswerError, UsageError

# TP3 errors end what they name at once in a client like this: somebody looks, nobody's traffic depends on it.
_FEATURES: Final = frozenset({ServerFeature.FAIL_ON_DATA_ERRORS})


@dataclass(frozen=True, slots=True)
class Connection:
    """Which server to connect to over xDS, as which node and with which credentials, as given on the command line;
    empty: not given.
    """

    bootstrap: str = ""
    ads: str = ""
    node: str = "xdsctl"
    cluster: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    token_file: str = ""
    delta: bool = False

    @property
    def variant(self) -> Variant:
        return Variant.DELTA if self.delta else Variant.SOTW

    def load(self, names: Iterable[str] = ()) -> Bootstrap:
        """The bootstrap: made from the address and credentials, or read from the file, or from where GRPC_XDS_BOOTSTRAP
        says. Raises UsageError.

        A server that is given by its address is used for all of `names`, whatever xdstp authority they have.
        """
        if self.ads:
            tls = Tls(self.ca_file, self.cert_file, self.key_file)
            if bool(self.cert_file) != bool(self.key_file):
                raise UsageError("--cert and --key go together.")
            credentials = Insecure() if tls == Tls() else tls
            server = Server(self.ads, credentials, self.token_file, _FEATURES)
            authorities = {xdstp_authority(name): Authority() for name in names if name.startswith(XDSTP)}
            return Bootstrap((server,), Node(self.node, self.cluster), authorities)
        try:
            return Bootstrap.load(Path(self.bootstrap) if self.bootstrap else FromEnvironment(os.environ))
        except BootstrapError as error:
            hint = "" if self.bootstrap else " Name a server with --ads HOST:PORT, or a file with --bootstrap."
            raise UsageError(f"{error}.{hint}") from error


def type_of(word: str) -> ResourceType:
    """The resource type that a word such as cluster, or a type URL, names. Raises UsageError for any other text."""
    kind = by_word.get(word) or by_url.get(word)
    if kind is None:
        raise UsageError(f"'{word}' is no resource type. There are: {', '.join(by_word)}.")
    return kind


def nacks_of(texts: Sequence[str]) -> Mapping[str, str]:
    """From texts NAME=TEXT, the text with which to refuse each resource, by its name. Raises UsageError for a text of
    another form.
    """
    found = dict(text.partition("=")[::2] for text in texts)
    if "" in found or "" in found.values():
        raise UsageError("--nack takes NAME=TEXT: which resource to refuse, and with which words.")
    return found


def refusing(kind: ResourceType, nacks: Mapping[str, str]) -> ClientType[Message]:
    """The standard client type of `kind`, but refusing each resource in `nacks` with the text given there."""
    standard = standard_type(kind)

    def read(data: bytes) -> Message:
        value = standard.read(data)
        text = nacks.get(str(getattr(value, kind.name_field)))
        if text is not None:
            raise InvalidResourceError(text)
        return value

    return ClientType(kind, read)


@dataclass(frozen=True, slots=True)
class Watched:
    """The result of watching names: a row for each, and how long it took.

    unreachable: no server answered.
    undecided: some name has neither resource nor error.
    """

    rows: tuple[JsonObject, ...]
    unreachable: bool
    undecided: bool
    seconds: float


Show = Callable[[Sequence[JsonObject]], None]


async def watch(
    connection: Connection,
    kind: ClientType[Message],
    names: Sequence[str],
    *,
    show: Show,
    seconds: float,
    once: bool,
) -> Watched:
    """Watch names for `seconds` or, with `once`, until each has a resource or an error if that is sooner. `show` is
    called with the rows at each change.
    """
    loop = asyncio.get_running_loop()
    news = asyncio.Event()
    began = loop.time()
    answered = False
    ears = [ear_of(kind.kind, name, news.set) for name in dict.fromkeys(names)]
    async with XdsClient(
        connection.load(names), types=[kind], variant=connection.variant, data_errors=DataErrorHandling.ON
    ) as client:
        for ear in ears:
            if isinstance(ear, CollectionEar):
                client.watch_collection(kind, ear.name, ear)
            else:
                client.watch(kind, ear.name, ear)
        while True:
            rows = rows_of(kind.kind, ears, client.cache())
            show(rows)
            # The reason why a name cannot be asked for comes a moment later than the first look at it.
            waits = any(row["state"] in {"requested", "refused"} and not row["error"] for row in rows)
            unreachable = any(row["state"] == "requested" and row["error"] for row in rows)
            answered = answered or any(row["state"] != "requested" for row in rows)
            left = began + seconds - loop.time()
            # A server that goes away is waited for; one that never was there is a mistake.
            if left <= 0 or (once and not waits) or (unreachable and not answered):
                return Watched(rows, unreachable, waits, loop.time() - began)
            news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await news.wait()


async def resolve(connection: Connection, target: str, seconds: float) -> XdsConfig | Status | None:
    """The first complete configuration of a target, or the Status that says why there is none; None when neither came
    within `seconds`.

    Raises UsageError, and NoAnswerError when no server was reached.
    """
    told: asyncio.Queue[XdsConfig | Status] = asyncio.Queue()
    async with XdsClient(
        connection.load(), target=target, variant=connection.variant, data_errors=DataErrorHandling.ON
    ) as client:
        try:
            manager = DependencyManager(client, target, told.put_nowait)
        except UnwatchableNameError as error:
            raise UsageError(f"{error}.") from error
        try:
            async with asyncio.timeout(seconds):
                found = await told.get()
        except TimeoutError:
            return None
        else:
            if isinstance(found, Status) and all(entry.state is CacheState.REQUESTED for entry in client.cache()):
                raise NoAnswerError(f"No server answers: {found.message}.")
            return found
        finally:
            manager.close()


def config_json(config: XdsConfig) -> JsonObject:
    """A configuration as JSON data: names, endpoints and errors."""
    names: Any = config
    return {
        "listener": names.listener.name,
        "route": names.route.name,
        "virtual_host": names.virtual_host.name,
        "clusters": {name: _cluster_json(cluster) for name, cluster in config.clusters.items()},
    }


def _cluster_json(cluster: ClusterConfig | Status) -> JsonObject:
    if isinstance(cluster, Status):
        return {"error": cluster.message}
    if not isinstance(cluster.children, EndpointConfig):
        return {"leaves": list(cluster.children)}
    return {"endpoints": _addresses(cluster.children.endpoints), "note": cluster.children.resolution_note}


def _addresses(assignment: Any) -> list[str]:
    if not isinstance(assignment, Message):
        return []
    found: Any = assignment
    places = (each.endpoint.address.socket_address for part in found.endpoints for each in part.lb_endpoints)
    return [f"{place.address}:{place.port_value}" for place in places]


# `doctor --as-client`.

_PROBE: Final = "xdsctl.doctor.is-not-there"
# Longer than the 15 s after which a client gives up on a silent server.
_PATIENCE_S: Final = 17.0


def checks(connection: Connection, resources: Sequence[tuple[ResourceType, str]]) -> Iterator[JsonObject]:
    """A row for each thing that a client depends on: bootstrap, identity, stream, whether the server reports errors of
    resources, and each of `resources`.
    """
    bootstrap = connection.load()
    for server in bootstrap.servers:
        features = ", ".join(sorted(feature.value for feature in server.features)) or "no features"
        yield _check("ok", "bootstrap", f"{server.uri}, {features}", "")
    for note in bootstrap.notes:
        yield _check("warn", "bootstrap", note, "Correct the bootstrap; clients ignore it.")
    yield _check("ok", "identity", _identity(bootstrap), "")
    probed = _once(connection, LISTENER, _PROBE)
    if probed["state"] == "requested":
        yield _check("FAIL", "stream", str(probed["error"]), "Look at the address, the certificates and the server.")
        return
    yield _check("ok", "stream", "the server answers", "")
    if probed["state"] == "received_error":
        yield _check("ok", "errors", f"the server says why ({probed['seconds']:.1f} s)", "")
    else:
        found = f"the server is silent about what it lacks: {probed['state']} after {probed['seconds']:.0f} s"
        yield _check("warn", "errors", found, "A client learns of a missing resource by its timer only (xRFC TP3).")
    for kind, name in resources:
        row = _once(connection, kind, name)
        good = row["state"] == "acked"
        found = f"{row['state']} {row['version']}" if good else f"{row['state']}: {row['error']}"
        fix = "" if good else "'xdsctl explain' says where on its way it is lost."
        yield _check("ok" if good else "FAIL", f"{kind.word} {name}", found, fix)


def _once(connection: Connection, kind: ResourceType, name: str) -> JsonObject:
    one = standard_type(kind)
    found = asyncio.run(watch(connection, one, [name], show=lambda _: None, seconds=_PATIENCE_S, once=True))
    return {**found.rows[0], "seconds": found.seconds}


def _identity(bootstrap: Bootstrap) -> str:
    credentials = bootstrap.servers[0].credentials
    proof = "no TLS" if isinstance(credentials, Insecure) else "TLS"
    if isinstance(credentials, Tls) and credentials.certificate_file:
        proof = f"the certificate {credentials.certificate_file}"
    token = ", a token" if bootstrap.servers[0].token_file else ""
    return f"node '{bootstrap.node.id}', {proof}{token}"


def _check(state: str, check: str, found: str, fix: str) -> JsonObject:
    return {"state": state, "check": check, "found": found, "fix": fix}
