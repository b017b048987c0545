"""Earlier snapshots: what they held, how they differ, and the way back."""

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.catalog.models import Blob, Environment
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from controlplane.snapshots.models import SnapshotRow
from tests.api.conftest import Answer, Caller, assert_problem, caller
from tests.services.incidents.fleet import publish, rebuild
from tests.support.manifests import cluster, tls_secret

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
HERE = "environments/default"


@pytest.fixture
def api() -> Caller:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    return caller(*ADMIN_SCOPES)


def live(api: Caller) -> dict[str, str]:
    rows = api.get(f"{HERE}/resources?manifests=true").json["results"]
    return {row["name"]: row["manifest"].get("connect_timeout", "") for row in rows}


def edited(answer: Answer) -> list[tuple[str, str]]:
    return [(each["name"], each["action"]) for each in answer.json.get("edits", answer.json.get("diff"))]


def refusal(answer: Answer, status: int) -> str:
    assert_problem(answer, status)
    return str(answer.json["detail"])


def three_epochs(api: Caller) -> None:
    """1: a and b; 2: a is slower; 3: b is gone and c is there."""
    publish(cluster("a"), cluster("b"))
    publish(cluster("a", connect_timeout="2s"))
    api.post(f"{HERE}/apply", {"resources": [cluster("c")], "delete": [{"type": "cluster", "name": "b"}]})
    rebuild()


def test_snapshot_resources__of_an_earlier_epoch__are_what_it_served(api: Caller) -> None:
    three_epochs(api)

    answer = api.get(f"{HERE}/snapshots/1/resources?manifests=true&type=cluster")

    found = {row["name"]: row["manifest"]["connect_timeout"] for row in answer.json["results"]}
    assert found == {"a": "1s", "b": "1s"}
    assert api.get(f"{HERE}/snapshots/1/resources?limit=1").json["count"] == 2


def test_diff__two_epochs_and_live__per_resource_field_and_as_text(api: Caller) -> None:
    three_epochs(api)

    answer = api.get(f"{HERE}/diff?from=1&to=3&text=true")

    assert edited(answer) == [("a", "updated"), ("b", "deleted"), ("c", "created")]
    assert answer.json["diff"][0]["fields"] == [{"pointer": "/connect_timeout", "before": "1s", "after": "2s"}]
    assert answer.json["diff"][2]["text"].startswith("--- /dev/null\n+++ b/cluster/c\n")
    assert answer.json["diff"] == api.get(f"{HERE}/diff?from=1&text=true").json["diff"]
    assert api.get(f"{HERE}/diff?from=3").json == {"count": 0, "diff": []}


@pytest.mark.parametrize("query", ["", "?from=x", "?from=-1", "?from=1&to=0"])
def test_diff__bad_state__422(api: Caller, query: str) -> None:
    assert_problem(api.get(f"{HERE}/diff{query}"), 422)


def test_rollback__two_epochs_back__resources_as_then_in_a_new_epoch_and_held(api: Caller) -> None:
    three_epochs(api)

    answer = api.post(f"{HERE}/rollback", {"to_epoch": 1, "reason": "c breaks checkout"})

    assert answer.status == 202
    assert sorted(edited(answer)) == [("a", "updated"), ("b", "created"), ("c", "deleted")]
    assert answer.json["message"] == "roll back to snapshot 1: c breaks checkout"
    assert live(api) == {"a": "1s", "b": "1s"}
    assert api.get(HERE).json["hold"] == "rolled back to snapshot 1: c breaks checkout"
    assert "c breaks checkout" in refusal(api.post(f"{HERE}/apply", {"resources": [cluster("d")]}), 409)
    rebuild()
    assert api.get(f"{HERE}/diff?from=1&to=4").json["count"] == 0


def test_rollback__while_held__goes_on_to_another_epoch_and_release_ends_it(api: Caller) -> None:
    three_epochs(api)
    api.post(f"{HERE}/rollback", {"to_epoch": 1, "reason": "first try"})

    onward = api.post(f"{HERE}/rollback", {"to_epoch": 2, "reason": "second try", "hold": False})
    api.patch(HERE, {"hold": None})

    assert onward.status == 202
    assert live(api) == {"a": "2s", "b": "1s"}
    assert api.post(f"{HERE}/apply", {"resources": [cluster("d")]}).status == 202


def test_rollback__to_what_is_there__changes_nothing_or_only_holds(api: Caller) -> None:
    publish(cluster("a"))

    nothing = api.post(f"{HERE}/rollback", {"to_epoch": 1, "reason": "none", "hold": False})
    held = api.post(f"{HERE}/rollback", {"to_epoch": 1, "reason": "freeze"})

    assert (nothing.status, nothing.json) == (200, {"changed": False})
    assert (held.status, held.json["edits"]) == (202, [])
    assert api.get(HERE).json["hold"] == "rolled back to snapshot 1: freeze"


def test_rollback__secret__comes_back_whole(api: Caller) -> None:
    publish(tls_secret("s", "first-key"))
    first = api.get(f"{HERE}/resources/secret/s").json
    publish(tls_secret("s", "second-key"))

    api.post(f"{HERE}/rollback", {"to_epoch": 1, "reason": "the new key is wrong"})

    assert api.get(f"{HERE}/resources/secret/s").json == first


def test_rollback__epoch_to_come_or_forgotten_or_altered__says_which(api: Caller) -> None:
    three_epochs(api)
    assert_problem(api.post(f"{HERE}/rollback", {"to_epoch": 9, "reason": "x"}), 404)

    SnapshotRow.objects.filter(epoch=1).delete()
    forgotten = refusal(api.post(f"{HERE}/rollback", {"to_epoch": 1, "reason": "x"}), 410)
    SnapshotRow.objects.filter(epoch=2).update(mac="0" * 32)
    altered = refusal(api.post(f"{HERE}/rollback", {"to_epoch": 2, "reason": "x"}), 410)

    assert "the oldest that is kept is 2" in forgotten
    assert "cannot be trusted" in altered


def test_rollback__chunk_is_missing__says_so_and_changes_nothing(api: Caller) -> None:
    publish(cluster("a"))
    publish(cluster("a", connect_timeout="2s"))
    row = SnapshotRow.objects.get(epoch=1)
    SnapshotRow.objects.filter(pk=row.pk).update(root=SnapshotRow.objects.get(epoch=2).root_id)
    generation = Environment.objects.get(key="default").generation

    assert_problem(api.post(f"{HERE}/rollback", {"to_epoch": 1, "reason": "x"}), 410)

    assert Environment.objects.get(key="default").generation == generation
    assert Blob.objects.exists()


@pytest.mark.parametrize(
    "body", [{}, {"to_epoch": 0, "reason": "x"}, {"to_epoch": 1}, {"to_epoch": "1", "reason": "x"}]
)
def test_rollback__bad_body__422(api: Caller, body: dict[str, object]) -> None:
    assert_problem(api.post(f"{HERE}/rollback", body), 422)


def test_rollback__editor__403_and_stranger_404() -> None:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    body = {"to_epoch": 1, "reason": "x"}

    assert_problem(caller(Scope(Role.EDITOR, "default")).post(f"{HERE}/rollback", body), 403)
    assert_problem(caller(Scope(Role.ADMIN, "prod")).post(f"{HERE}/rollback", body), 404)
