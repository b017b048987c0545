"""Labels on clients: set for all or none, found by, and kept while the client is away."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES, Principal, Role, Scope
from controlplane.clients.browsing import Standing, client_page, clients_wanted
from controlplane.clients.clock import database_now
from controlplane.clients.filtering import ClientFilter
from controlplane.clients.labelling import MAX_LABELLED, clients_chosen
from controlplane.clients.models import Client, ClientLabels, Stream
from controlplane.clients.selectors import client_get, client_list
from controlplane.clients.services import clients_label, facts_prune
from controlplane.clients.services.upkeep import LABELS_KEPT
from controlplane.common.errors import Conflict, Forbidden, InputInvalid, InputTooLarge, NotFound
from controlplane.database.aliases import READER
from controlplane.journal.models import AuditEvent
from tests.services.clients.test_shares import limited
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster
from tests.support.principals import somebody
from xdscore.labels import LabelEdits, selector_read

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]
OLA = somebody("ola", (Scope(Role.OPERATOR, "default"),))


@pytest.fixture
def ids(database: str) -> Mapping[str, str]:
    """The ids of four clients by node id."""
    publish(cluster("pay"))
    four = Fleet(4)
    four.accept(held("pay", 1))
    return dict(Client.objects.values_list("node_id", "pk"))


def label(ids: Mapping[str, str], *nodes: str, actor: Principal = OLA, **edits: str | None) -> int:
    chosen = [ids[each] for each in nodes]
    return len(clients_label(environment_key="default", clients=chosen, edits=edits, actor=actor).moved)


def found(selector: str) -> set[str]:
    """The node ids that the API's list and the page find, which are the same."""
    wanted = ClientFilter(labels=selector_read(selector))
    listed = {each.node_id for each in client_list(environment_keys=["default"], wanted=wanted)}
    assert listed == {each.client.node_id for each in client_page(environment_keys=["default"], wanted=wanted)[0]}
    return listed


def test_label__several_clients__are_found_by_it_in_one_entry_of_the_audit_log(ids: Mapping[str, str]) -> None:
    assert label(ids, "node-1", "node-2", team="pay", tier="1") == 2
    assert label(ids, "node-2", "node-3", team="shop", tier=None) == 2
    assert label(ids, "node-2", team="shop") == 0

    assert client_get(public_id=ids["node-1"]).label_words == ("team=pay", "tier=1")
    assert found("team=pay") == {"node-1"}
    assert found("team") == {"node-1", "node-2", "node-3"}
    assert found("team!=pay") == {"node-2", "node-3", "node-4"}
    assert found("!team") == {"node-4"}
    assert found("team=Pay") == set()
    first, second = AuditEvent.objects.filter(verb="clients.labelled").order_by("pk")
    assert first.detail == {
        "labels": ["team=pay", "tier=1"],
        "clients": [ids["node-1"], ids["node-2"]],
        "count": 2,
    }
    assert (second.subject, second.actor, second.environment) == ("2 clients", "ola", "default")


def test_label__the_last_one_removed__leaves_no_row(ids: Mapping[str, str]) -> None:
    label(ids, "node-1", team="pay")
    label(ids, "node-1", team=None)

    assert not ClientLabels.objects.exists()
    assert found("!team") == set(ids)


@pytest.mark.parametrize(
    ("clients", "edits", "error"),
    [
        (["node-1", "nobody"], {"team": "pay"}, NotFound),
        ([], {"team": "pay"}, InputInvalid),
        (["node-1"], {}, InputInvalid),
        (["node-1"], {f"k{number}": "v" for number in range(65)}, InputInvalid),
        ([f"c{number}" for number in range(MAX_LABELLED + 1)], {"team": "pay"}, InputTooLarge),
    ],
)
def test_label__something_is_wrong__labels_nobody(
    ids: Mapping[str, str], clients: list[str], edits: LabelEdits, error: type[Exception]
) -> None:
    with pytest.raises(error):
        clients_label(
            environment_key="default", clients=[ids.get(each, each) for each in clients], edits=edits, actor=OLA
        )

    assert not ClientLabels.objects.exists()


def test_label__by_who_is_no_operator_there__is_refused(ids: Mapping[str, str]) -> None:
    for scope in (Scope(Role.EDITOR, "default"), Scope(Role.OPERATOR, "prod")):
        with pytest.raises(Forbidden):
            label(ids, "node-1", actor=somebody("kim", (scope,)), team="pay")


def test_label__of_a_client_of_another_environment__is_not_found(ids: Mapping[str, str]) -> None:
    with pytest.raises(NotFound):
        clients_label(
            environment_key="prod",
            clients=[ids["node-1"]],
            edits={"team": "pay"},
            actor=somebody("dana", ADMIN_SCOPES),
        )


def test_label__more_than_there_may_be_clients__is_refused(ids: Mapping[str, str], settings: Settings) -> None:
    label(ids, "node-1", team="pay")
    limited(settings, clients_per_environment=2)

    with pytest.raises(Conflict):
        label(ids, "node-2", "node-3", team="pay")

    assert found("team") == {"node-1"}


def test_prune__client_forgotten__labels_wait_for_it_and_go_after_their_time(ids: Mapping[str, str]) -> None:
    label(ids, "node-1", "node-2", team="pay")
    Stream.objects.all().delete()
    kept = Client.objects.get(node_id="node-1")
    Client.objects.all().delete()
    facts_prune()
    assert ClientLabels.objects.exclude(gone_at=None).count() == 2

    kept.save(force_insert=True)
    assert found("team=pay") == {"node-1"}
    ClientLabels.objects.update(gone_at=database_now() - LABELS_KEPT - timedelta(hours=1))
    facts_prune()

    assert [(each.pk, each.gone_at) for each in ClientLabels.objects.all()] == [(ids["node-1"], None)]


def test_chosen__more_than_are_labelled_at_once__says_how_many(
    ids: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = clients_wanted(environment_keys=["default"], wanted=ClientFilter(), standing=Standing.CONNECTED)
    monkeypatch.setattr("controlplane.clients.labelling.MAX_LABELLED", 3)

    with pytest.raises(InputTooLarge, match="4 clients are meant"):
        clients_chosen(rows)
