"""Writing resources: atomic, idempotent, with history."""

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.choices import QuarantineCause
from controlplane.catalog.models import Blob, Change, Resource, Revision
from controlplane.catalog.selectors import environments_due, resource_get, resource_list, resource_row, revision_list
from controlplane.catalog.services import (
    Terms,
    change_apply,
    environment_create,
    environment_default_ensure,
    environment_update,
    proofs_record,
    quarantine_open,
    quarantine_release,
)
from controlplane.catalog.values import (
    ChangeMade,
    Delete,
    EnvironmentPolicy,
    Existing,
    Expectation,
    ProvenContent,
    Put,
)
from controlplane.common.errors import Conflict, InputInvalid, NotFound, PreconditionFailed
from controlplane.journal.models import AuditEvent
from tests.support.manifests import cluster, parsed, tls_secret
from tests.support.principals import somebody
from xdscore.resource_types import CLUSTER, SECRET

pytestmark = pytest.mark.django_db(transaction=True)

DANA = somebody("dana", ADMIN_SCOPES)


@pytest.fixture(autouse=True)
def environment() -> None:
    environment_default_ensure()


def put(*trees: dict[str, object], expect: Expectation = Existing.ANY, owner: str | None = None) -> ChangeMade:
    edits = [Put(parsed(tree), expect) for tree in trees]
    return change_apply(environment_key="default", edits=edits, actor=DANA, message="why", terms=Terms(owner))


def test_change_apply__two_new_clusters__one_change_at_the_next_generation() -> None:
    made = put(cluster("a"), cluster("b"))

    assert made.changed
    assert [(edit.name, edit.action, edit.revision) for edit in made.edits] == [
        ("a", "created", 1),
        ("b", "created", 1),
    ]
    change = Change.objects.get(public_id=made.change_id)
    assert (change.author, change.message, change.generation) == ("dana", "why", 2)
    assert environments_due()
    assert AuditEvent.objects.filter(verb="change.saved", actor="dana").exists()


def test_change_apply__same_content_again__makes_nothing() -> None:
    put(cluster("a"))
    before = Change.objects.count(), Revision.objects.count(), Blob.objects.count()

    again = put(cluster("a"))

    assert not again.changed
    assert (Change.objects.count(), Revision.objects.count(), Blob.objects.count()) == before


def test_change_apply__delete_and_create_again__revision_numbers_go_on() -> None:
    put(cluster("a"))
    change_apply(environment_key="default", edits=[Delete(CLUSTER, "a")], actor=DANA)

    put(cluster("a"))

    assert resource_get(environment_key="default", kind=CLUSTER, name="a").revision == 3
    history = revision_list(environment_key="default", kind=CLUSTER, name="a")
    assert [(row.number, row.blob_id is None) for row in history] == [(3, False), (2, True), (1, False)]


def test_change_apply__one_edit_fails_its_precondition__nothing_is_written() -> None:
    put(cluster("a"))

    with pytest.raises(PreconditionFailed, match="is at revision r1") as failure:
        change_apply(
            environment_key="default",
            edits=[Put(parsed(cluster("b"))), Put(parsed(cluster("a", connect_timeout="2s")), frozenset({7}))],
            actor=DANA,
        )

    assert failure.value.etag == ""  # of which of them?
    assert [finding.resource_name for finding in failure.value.findings] == ["a"]
    assert not Resource.objects.filter(name="b").exists()


@pytest.mark.parametrize(
    ("existing", "expect", "allowed"),
    [
        (False, Existing.ABSENT, True),
        (True, Existing.ABSENT, False),
        (False, Existing.PRESENT, False),
        (True, Existing.PRESENT, True),
        (True, frozenset({1}), True),
        (True, frozenset({2}), False),
        (False, frozenset({1}), False),
    ],
)
def test_change_apply__expectation__decides(existing: bool, expect: Expectation, allowed: bool) -> None:
    if existing:
        put(cluster("a"))

    if allowed:
        assert put(cluster("a", connect_timeout="3s"), expect=expect).changed
    else:
        with pytest.raises(PreconditionFailed):
            put(cluster("a", connect_timeout="3s"), expect=expect)


def test_change_apply__name_edited_twice__says_which() -> None:
    with pytest.raises(InputInvalid) as failure:
        put(cluster("a"), cluster("a", connect_timeout="2s"))

    assert [finding.resource_name for finding in failure.value.findings] == ["a"]


def test_change_apply__environment_held__is_refused_with_the_reason() -> None:
    environment_update(key="default", policy=EnvironmentPolicy(hold="incident 7"), actor=DANA)

    with pytest.raises(Conflict, match="incident 7"):
        put(cluster("a"))


def test_change_apply__unknown_environment_or_name__is_not_found() -> None:
    with pytest.raises(NotFound, match="nowhere"):
        change_apply(environment_key="nowhere", edits=[Put(parsed(cluster("a")))], actor=DANA)
    with pytest.raises(NotFound, match="no cluster 'a'"):
        change_apply(environment_key="default", edits=[Delete(CLUSTER, "a")], actor=DANA)


def test_change_apply__only_the_owner_differs__is_a_change() -> None:
    put(cluster("a"), owner="team-a")

    assert put(cluster("a"), owner="team-b").changed
    assert not put(cluster("a"), owner=None).changed


def test_change_apply__secret__is_sealed_at_rest_and_opens_again() -> None:
    put(tls_secret("key", "hunter2hunter2"))

    blob = Blob.objects.get(kind="secret")
    assert b"hunter2" not in bytes(blob.data)
    assert b"hunter2hunter2" in resource_get(environment_key="default", kind=SECRET, name="key").any_bytes
    assert not put(tls_secret("key", "hunter2hunter2")).changed


def test_quarantine__opened_and_released__each_is_a_change_once() -> None:
    put(cluster("a"))

    opened, again = quarantine_a(1), quarantine_a(1)
    released = quarantine_release(
        environment_key="default", word="cluster", name="a", revision=1, reason="mended", actor=DANA
    )

    assert (opened.changed, again.changed, released.changed) == (True, False, True)


def test_quarantine_open__newer_revision_is_current__is_refused() -> None:
    put(cluster("a"))
    put(cluster("a", connect_timeout="2s"))

    with pytest.raises(Conflict, match="r2 is"):
        quarantine_a(1)


def test_proofs_record__acknowledged_versions__newest_proven_revision_becomes_the_fallback() -> None:
    put(cluster("a"))
    put(cluster("a", connect_timeout="2s"))
    versions = {row.number: row.version for row in Revision.objects.filter(resource__name="a")}

    newly = proofs_record(proven=[ProvenContent("default", "cluster", "a", versions[number]) for number in (2, 1)])
    again = proofs_record(proven=[ProvenContent("default", "cluster", "a", versions[1])])

    assert (newly, again) == (2, 0)
    assert Resource.objects.values_list("proven__number", flat=True).get(name="a") == 2


def test_quarantine__of_what_others_acknowledged__the_fallback_is_the_one_before_until_it_is_released() -> None:
    put(cluster("a"))
    put(cluster("a", connect_timeout="2s"))
    versions = Revision.objects.filter(resource__name="a").values_list("version", flat=True)
    proofs_record(proven=[ProvenContent("default", "cluster", "a", version) for version in versions])
    fallback = Resource.objects.values_list("proven__number", flat=True)

    quarantine_a(2)
    meanwhile = fallback.get(name="a")
    shown = resource_row(resource_list(environment_key="default").get(name="a"))
    quarantine_release(environment_key="default", word="cluster", name="a", revision=2, reason="mended", actor=DANA)

    assert (meanwhile, fallback.get(name="a")) == (1, 2)
    assert (shown.revision, shown.proven, shown.quarantined) == (2, True, True)


def test_change_apply__back_to_a_proven_content__is_proven_at_once() -> None:
    put(cluster("a"))
    version = Revision.objects.get(resource__name="a").version
    proofs_record(proven=[ProvenContent("default", "cluster", "a", version)])
    put(cluster("a", connect_timeout="2s"))
    assert Resource.objects.values_list("proven__number", flat=True).get(name="a") == 1

    put(cluster("a"))

    assert Resource.objects.values_list("proven__number", flat=True).get(name="a") == 3


def test_environment_create__taken_key__is_a_conflict_and_new_ones_deny() -> None:
    made = environment_create(key="prod", policy=EnvironmentPolicy(), actor=DANA)

    assert made.changed
    with pytest.raises(Conflict, match="prod"):
        environment_create(key="prod", policy=EnvironmentPolicy(), actor=DANA)


def quarantine_a(revision: int) -> ChangeMade:
    return quarantine_open(
        environment_key="default",
        word="cluster",
        name="a",
        revision=revision,
        cause=QuarantineCause.OPERATOR,
        reason="nacked",
        actor=DANA,
    )
