"""A stored secret that cannot be opened costs only itself, and is read again (law 1, reliability P10, threat 19)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from structlog.typing import EventDict

from adsserver.engine.events import SotwRequest, Variant
from adsserver.engine.publication import Publication
from adsserver.engine.session import EngineSettings, Session
from adsserver.store import loader
from adsserver.wire.discovery import Encoder
from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Blob
from controlplane.catalog.services import change_apply, environment_default_ensure
from controlplane.catalog.values import Put
from tests.support.ads_replica import Replica
from tests.support.last_good import altered
from tests.support.manifests import cluster, parsed, tls_secret
from tests.support.principals import somebody
from xdscore.access import Effect
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import SECRET

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)


@pytest.fixture(autouse=True)
def environments() -> None:
    environment_default_ensure()
    rule_create(environment_key="default", draft=RuleDraft(Effect.ALLOW, "*", types=(SECRET.word,)), actor=DANA)


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    with structlog.testing.capture_logs() as events:
        yield events


def put(*trees: dict[str, object]) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)
    builds_sweep()


def damaged(*trees: dict[str, object]) -> dict[str, bytes]:
    """Put these, of which one is a secret, and flip a bit of its stored bytes; them, as they were."""
    before = set(Blob.objects.values_list("pk", flat=True))
    put(*trees)
    rows = Blob.objects.filter(kind="secret").exclude(pk__in=before)
    sealed = {row.pk: bytes(row.data) for row in rows}
    for key, data in sealed.items():
        Blob.objects.filter(pk=key).update(data=altered(data, -1))
    assert len(sealed) == 1
    return sealed


def told(replica: Replica, name: str) -> tuple[int, dict[str, str]]:
    """What a new stream that asks for this secret is sent: the number of resources, and errors by name."""
    session = Session(Variant.SOTW, ClientFacts(node_id="n"), EngineSettings(), Publication(replica.snapshot(), None))
    session.receive(SotwRequest(SECRET, (name,)), 0.0)
    response = session.compose(0.0)
    assert response is not None
    Encoder(replica.contents, "test").encode(Variant.SOTW, response)
    return len(response.resources), {error.name: error.code.name for error in response.errors}


def test_secret__altered_from_the_start__its_name_is_unavailable_and_the_rest_is_served(
    tmp_path: Path, logged: list[EventDict]
) -> None:
    damaged(cluster("a"), tls_secret("key", "first"))

    replica = Replica(tmp_path).look()

    assert told(replica, "key") == (0, {"key": "UNAVAILABLE"})
    assert replica.timeouts() == {"a": parsed(cluster("a")).any_bytes}
    (said,) = [event for event in logged if event["event"] == "secret.unreadable"]
    assert (said["environment"], said["contents"]) == ("default", 1)
    assert "altered" in said["reason"]


def test_secret__next_revision_altered__the_last_good_one_goes_on(tmp_path: Path) -> None:
    put(tls_secret("key", "first"))
    replica = Replica(tmp_path).look()
    first = replica.snapshot().type_state(SECRET).served["key"].content

    damaged(tls_secret("key", "second"), cluster("a"))
    replica.look()

    assert replica.snapshot().type_state(SECRET).served["key"].content == first  # F14
    assert told(replica, "key") == (1, {})
    assert set(replica.timeouts()) == {"a"}


def test_secret__mended__is_served_without_a_new_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = damaged(tls_secret("key", "first"))
    replica = Replica(tmp_path).look()
    unreadable = replica.snapshot()
    for key, data in sealed.items():
        Blob.objects.filter(pk=key).update(data=data)

    assert replica.look().snapshot() is unreadable  # not at every poll
    monkeypatch.setattr(loader, "_REREAD_S", 0.0)
    monkeypatch.setattr(replica.loader, "_reread_at", 0.0)
    replica.look()

    assert told(replica, "key") == (1, {})
    assert replica.snapshot().epoch == unreadable.epoch


def test_secret__still_altered_when_read_again__nothing_is_offered_or_logged_anew(
    tmp_path: Path, logged: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged(tls_secret("key", "first"))
    replica = Replica(tmp_path).look()
    offers = len(replica.offered)
    monkeypatch.setattr(loader, "_REREAD_S", 0.0)
    monkeypatch.setattr(replica.loader, "_reread_at", 0.0)

    replica.look().look()

    assert len(replica.offered) == offers
    assert len([event for event in logged if event["event"] == "secret.unreadable"]) == 1
