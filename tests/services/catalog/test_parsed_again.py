"""Earlier contents are parsed by the rules of today; once, where nothing that comes of it changes or is secret."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Blob, Revision
from controlplane.catalog.services import change_apply, environment_default_ensure, restoring
from controlplane.catalog.values import Put
from tests.support.certificates import Authority
from tests.support.manifests import Tree, cluster, parsed, tls_secret
from tests.support.principals import somebody
from xdscore.schema import parse, shipped, types_registry
from xdscore.schema.pool import schema_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("database")]
DANA = somebody("dana", ADMIN_SCOPES)


def stored(tree: Tree) -> tuple[Blob, str, str]:
    environment_default_ensure()
    change_apply(environment_key="default", edits=[Put(parsed(tree))], actor=DANA, message="", request_id="")
    revision = Revision.objects.select_related("blob", "resource").latest("pk")
    assert revision.blob is not None
    return revision.blob, revision.resource.type, revision.resource.name


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Grows by one with each content that is parsed."""
    found: list[object] = []

    def counting(*given: object, **named: object) -> object:
        found.append(given)
        return parse(*given, **named)  # type: ignore[arg-type]  # whatever it is asked

    restoring._known.clear()
    monkeypatch.setattr(restoring, "parse", counting)
    yield found
    restoring._known.clear()


def trusting() -> Tree:
    """A cluster with a certificate in it, which expires."""
    _, certificate = Authority("test").issue(dns="edge", ends=timedelta(days=400))
    tls = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
    context = {"validation_context": {"trusted_ca": {"inline_string": certificate.decode()}}}
    return cluster(
        "pay", transport_socket={"name": "tls", "typed_config": {"@type": tls, "common_tls_context": context}}
    )


@pytest.mark.parametrize(
    ("tree", "parsings"),
    [(cluster("pay"), 1), (tls_secret("edge", "KEY"), 2), (trusting(), 2)],
    ids=["lasting", "secret", "expires"],
)
def test_parsed_again__twice__is_remembered_where_it_can_be(tree: Tree, parsings: int, times: list[object]) -> None:
    blob, word, name = stored(tree)

    first, second = (restoring.parsed_again(blob, word, name, ttl_ms=0) for _ in range(2))

    assert first == second
    assert len(times) == parsings


def test_parsed_again__another_name_ttl_or_schema__is_parsed_anew(times: list[object]) -> None:
    blob, word, name = stored(cluster("pay"))
    before = types_registry.schema()

    restoring.parsed_again(blob, word, name, ttl_ms=0)
    restoring.parsed_again(blob, word, name, ttl_ms=60_000)
    restoring.parsed_again(blob, word, "another", ttl_ms=0)
    try:
        types_registry.use(schema_of(shipped.standard()))
        restoring.parsed_again(blob, word, name, ttl_ms=0)
        known = len(restoring._known)
    finally:
        types_registry.use(before)

    assert len(times) == 4
    assert known == 1  # nothing of the schema before stays


def test_parsed_again__more_than_fit__are_forgotten(times: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "_MAX_KNOWN", 1)
    kept = [stored(cluster(name)) for name in ("pay", "other")]

    for blob, word, name in (*kept, kept[0]):
        restoring.parsed_again(blob, word, name, ttl_ms=0)

    assert (len(times), len(restoring._known)) == (3, 1)
