"""A secret that a data plane quotes is nowhere: not in a row, a log line, an answer, a page, a message or the status of
clients, in whatever spelling it was quoted. Everything in between is real: what was published is loaded as an ADS
process loads it, what clients say goes the way of theirs.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from hashlib import blake2b
from urllib.parse import quote

import pytest
import structlog
from django.db import connection
from django.test import Client
from envoy.service.status.v3 import csds_pb2

from adsserver.engine.body import EMPTY_BODY
from adsserver.engine.events import NamedContent
from adsserver.engine.holdings import BodyGround, Holdings
from adsserver.ports import Directory, Reader
from adsserver.store import Store, open_store
from adsserver.store.facts import FactBuffer
from adsserver.store.tail import TappedFacts
from adsserver.wire.status import answer
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create, client_token_create
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Change
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.changesets.services import change_set_create
from controlplane.clients.foreign_text import NOT_SHOWN
from controlplane.clients.models import Client as ClientRow
from controlplane.clients.models import Nack, SaidDifference
from controlplane.clients.selectors import client_get
from controlplane.database.aliases import READER
from controlplane.explain import beliefs
from controlplane.explain.words import word_take
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest, incident_quarantine
from controlplane.logs.setup import logging_config
from controlplane.notify.bodies import slack_body, webhook_body
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel, Notification
from controlplane.notify.services import channel_create
from controlplane.notify.services.expanding import notifications_expand
from tests.support.facts import rejected, respond, stream, subscribed
from tests.support.manifests import TYPE, Tree, cluster, endpoints, listener, parsed, route, tls_secret
from tests.support.rollouts import rollout_begun
from tests.support.sensitive_fields import spellings, traces
from tests.web.conftest import DANA
from tests.web.test_hostile import paths
from xdscore.holdings import Holding, HoldingState
from xdscore.limits import Limits
from xdscore.redaction import REDACTED
from xdscore.resource_types import by_word
from xdscore.said import Said, SaidSource, SaidState, Word

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

# The document of the API and its reader hold nothing that anybody wrote.
_LEFT_OUT = frozenset({"/logout", "/api/v1/schema/", "/api/v1/schema/ui/"})
_AWS = TYPE + "envoy.extensions.common.aws.v3.InlineCredentialProvider"
# What a rollout brings of them.
_NEW: dict[str, Tree] = {"cluster": {"connect_timeout": "7s"}, "route": {"ignore_port_in_host_matching": True}}
_TLS = TYPE + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
_AUTHZ = TYPE + "envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute"


def canary(kind: str) -> str:
    """A secret with everything in it that is spelt differently somewhere, and no word that a text has by itself."""
    mark = blake2b(kind.encode(), digest_size=10).hexdigest()
    return f"{mark}-Zürich/\"q\"\\9 'x'+k_7=\n{mark[::-1]} & 2nd line, 100% {mark[5:15]}"


def quotations(kind: str) -> Iterator[str]:
    """How it is quoted here; tests/unit/xdscore/test_redaction.py has every way for every field."""
    ways = spellings(canary(kind))
    yield from (ways[way] for way in ("raw", "json in json", "octal", "base64, further in", "hexadecimal", "cut"))


def _aws(field: str, secret: str) -> Tree:
    return {"@type": _AWS, "access_key_id": "id", "secret_access_key": "another secret", field: secret}


def manifests() -> dict[str, Tree]:
    """By type, a resource with a secret in a field that the API marks."""
    made = {word: canary(word) for word in ("cluster", "endpoint", "extension", "listener", "route", "secret")}
    certificate = {"password": {"inline_string": made["cluster"]}}
    tls = {"@type": _TLS, "common_tls_context": {"tls_certificates": [certificate]}}
    hosts = endpoints("pay", 8080)
    hosts["endpoints"][0]["metadata"] = {"typed_filter_metadata": {"k": _aws("session_token", made["endpoint"])}}  # type: ignore[index]
    authz = {"@type": _AUTHZ, "check_settings": {"context_extensions": {"k": made["route"]}}}
    metadata = {"typed_filter_metadata": {"k": _aws("secret_access_key", made["listener"])}}
    return {
        "cluster": cluster("pay", transport_socket={"name": "tls", "typed_config": tls}),
        "endpoint": hosts,
        "extension": {
            "@type": TYPE + "envoy.config.core.v3.TypedExtensionConfig",
            "name": "pay",
            "typed_config": _aws("session_token", made["extension"]),
        },
        "listener": {**listener("pay", "pay", 8443), "metadata": metadata},
        "route": {**route("pay", "pay"), "typed_per_filter_config": {"envoy.filters.http.ext_authz": authz}},
        "secret": tls_secret("pay", made["secret"]),
    }


class World:
    """One ADS process and one client that refuses everything, quoting it."""

    def __init__(self) -> None:
        directories: list[Directory] = []
        self.store: Store = open_store(directories.append)
        while self.store._loader._look():
            pass
        self.snapshot = directories[-1].snapshots["default"]
        tapped = self.store.facts
        assert isinstance(tapped, TappedFacts)
        assert isinstance(tapped._facts, FactBuffer)
        self.facts: FactBuffer = tapped._facts
        self.client = stream(1)
        self.facts.opened(self.client)

    def held(self, word: str) -> NamedContent:
        return NamedContent("pay", self.snapshot.type_state(by_word[word]).served["pay"].content)

    def refuse(self, word: str) -> None:
        """Once for each way to quote its secret."""
        kind, held = by_word[word], self.held(word)
        response = respond(held, kind=kind)
        self.facts.learnt(self.client, subscribed("pay", kind=kind))
        self.facts.sent(self.client, response)
        for quoted in quotations(word):
            text = f"Error adding/updating {word}(s) pay: refused <{quoted}> of pay"
            self.facts.learnt(self.client, rejected(response, text))
        refused = {"pay": Holding(HoldingState.NACKED, held.content.version)}
        self.facts.holds(self.client, kind, Holdings(BodyGround(EMPTY_BODY, tells=True), refused))

    def write(self) -> None:
        self.facts._take(everything=True)
        self.facts._flush()
        assert self.facts._failing_since is None

    def status(self) -> bytes:
        """What CSDS says of everybody, with contents."""
        reader = Reader("reader", frozenset({"default"}))
        return answer(csds_pb2.ClientStatusRequest().SerializeToString(), reader, self.store.fleet, Limits()).data


@pytest.fixture
def world(two_environments: None) -> Iterator[World]:
    change_apply(
        environment_key="default",
        edits=[Put(parsed(tree)) for tree in manifests().values()],
        actor=DANA,
        message="why",
    )
    builds_sweep()
    channel_create(wanted=NewChannel("ops", ChannelKind.MAIL, "ops@example.org"), actor=SYSTEM)
    world = World()
    yield world
    # It looks at the database every ten seconds, which a later test may not have.
    world.store._watch.stop()
    world.store._watch._thread.join()


def _say(client: str, world: World) -> None:
    """What somebody reads off the client itself, which uses what it refuses."""
    for word in manifests():
        version = world.held(word).content.version
        for quoted in quotations(word):
            said = Said(word, "pay", SaidState.ACKED, held=True, version=version, error=f"has <{quoted}> of pay")
            found = Word(SaidSource.CSDS, "node-1", frozenset({word}), (said,))
            word_take(client=client_get(public_id=client), word=found, by="token:x")


def rows() -> Iterator[tuple[str, bytes]]:
    """Every value of every table, and what it is when it is not packed."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")  # noqa: S608 - a table's own name
            for row in cursor.fetchall():
                for value in row:
                    data = bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
                    yield f"table {table}", data
                    try:
                        yield f"table {table}, unpacked", zlib.decompress(data)
                    except zlib.error:
                        continue


def shown(browser: Client, several: Iterable[dict[str, str]]) -> Iterator[tuple[str, bytes]]:
    """Every page and every answer of the API."""
    token = api_token_create(name="reader", scopes=ADMIN_SCOPES, actor=SYSTEM)[1]
    client_token_create(subject="x", environment="", actor=SYSTEM)
    reader = Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)
    for path in sorted({path for parts in several for path in paths(parts)}):
        if path not in _LEFT_OUT:
            each = (reader if path.startswith("/api/") else browser).get(path)
            yield path, b"".join(each) if each.streaming else each.content


def test_secret__quoted_in_every_spelling_by_who_refuses_it__is_nowhere(
    admin: Client, world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beliefs, "SETTLED_AFTER", timedelta(minutes=-1))  # nothing counts as having just moved
    caplog.set_level("DEBUG")
    words = tuple(manifests())
    for word in words:
        world.refuse(word)
        world.write()
    digest()
    incidents = {each.type: str(each.public_id) for each in Incident.objects.all()}
    incident_quarantine(public_id=incidents["cluster"], reason="why", actor=DANA, request_id="r")
    builds_sweep()
    client = ClientRow.objects.get().pk
    _say(client, world)
    rollout = rollout_begun(*({**tree, **_NEW.get(word, {})} for word, tree in manifests().items()), actor=DANA)
    edits = [Put(parsed(tree)) for tree in manifests().values()]
    proposed = change_set_create(environment_key="default", title="the same", edits=edits, actor=DANA)
    notifications_expand()

    formatter = structlog.stdlib.ProcessorFormatter(
        **{key: value for key, value in logging_config(as_json=True)["formatters"]["event"].items() if key != "()"}  # type: ignore[index]
    )
    places: list[tuple[str, bytes]] = [
        *rows(),
        *((f"log {record.name}", formatter.format(record).encode()) for record in caplog.records),
        *(("message", json.dumps(dict(webhook_body(row, "d"))).encode()) for row in Notification.objects.all()),
        *(("message", json.dumps(slack_body(row)).encode()) for row in Notification.objects.all()),
        ("status of clients", world.status()),
    ]
    several = [
        {
            "environment_key": "default", "type": word, "word": word, "name": "pay", "incident_id": incident,
            "client_id": client, "change_id": str(Change.objects.latest("id").public_id),
            "channel_id": str(Channel.objects.get().public_id), "token_id": "1", "user_id": "1",
            "group_id": "1", "token": "x", "epoch": "1", "listed": "resources",
            "revision": "1", "number": "1", "code": "XDS2101", "family": "grpc", "group_key": quote("x"),
            "rule_id": "1", "case_id": "1", "route_case_id": "1", "rollout_id": rollout, "change_set_id": proposed,
            "comment_id": "00000000-0000-4000-8000-000000000000", "link_id": "1",
            "view_id": "00000000-0000-4000-8000-000000000000",
        }
        for word, incident in incidents.items()
    ]  # fmt: skip
    places += shown(admin, several)

    finders: list[Callable[[bytes], Iterator[str]]] = [traces(canary(word)) for word in words]
    assert [(place, each) for place, data in places for found in finders for each in found(data)][:5] == []

    kept = list(Nack.objects.values_list("text", flat=True))
    assert incidents.keys() == set(words)
    assert all(REDACTED in text and text != NOT_SHOWN and "pay: refused" in text for text in kept)
    assert len(places) > 500
    said = SaidDifference.objects.filter(error__contains=REDACTED)
    assert set(said.values_list("type", flat=True)) == set(words)
