"""What an environment takes: dangerous content by policy, restores as new revisions, deletions that leave orphans."""

from dataclasses import replace

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Change, Environment, Revision
from controlplane.catalog.selectors import environment_get, resource_get
from controlplane.catalog.services import (
    change_apply,
    change_plan,
    environment_create,
    environment_default_ensure,
    environment_update,
    resource_restore,
)
from controlplane.catalog.values import ChangeMade, Delete, EnvironmentPolicy, Put
from controlplane.common.errors import InputInvalid, NotFound
from tests.support.manifests import cluster, endpoints, parsed, route, tls_secret
from tests.support.principals import somebody
from xdscore.findings import Severity
from xdscore.resource_types import CLUSTER, SECRET
from xdscore.schema.content_policy import KINDS, ContentPolicy, Stance

pytestmark = pytest.mark.django_db(transaction=True)

DANA = somebody("dana", ADMIN_SCOPES)
ON_LOOPBACK = endpoints("pay", 8080)


@pytest.fixture(autouse=True)
def environments() -> None:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=DANA)


def apply(*edits: Put | Delete, environment: str = "default") -> ChangeMade:
    return change_apply(environment_key=environment, edits=list(edits), actor=DANA)


def put(tree: dict[str, object]) -> Put:
    return Put(parsed(tree))


def test_change_apply__content_the_environment_refuses__is_refused_and_nothing_is_written() -> None:
    before = Revision.objects.count()

    with pytest.raises(InputInvalid, match="does not take such content") as failure:
        apply(put(cluster("pay")), put(ON_LOOPBACK), environment="prod")

    (finding,) = [each for each in failure.value.findings if each.severity is Severity.ERROR]
    assert (finding.code, finding.resource_name) == ("XDS1074", "pay")
    assert finding.pointer == "/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/address"
    assert Revision.objects.count() == before


@pytest.mark.parametrize(("stance", "severities"), [(Stance.WARN, ["warning"]), (Stance.ALLOW, [])])
def test_change_apply__content_the_environment_takes__is_stored_with_what_it_thinks_of_it(
    stance: Stance, severities: list[str]
) -> None:
    policy = EnvironmentPolicy(content=ContentPolicy(loopback=stance))
    environment_update(key="prod", policy=policy, actor=DANA)

    made = apply(put(ON_LOOPBACK), environment="prod")

    assert environment_get(key="prod").policy == policy
    assert [each.severity.value for each in made.findings] == severities
    stored = resource_get(environment_key="prod", kind=parsed(ON_LOOPBACK).type, name="pay")
    assert [each.severity.value for each in stored.findings] == severities


def test_change_apply__metadata_service_of_a_cloud__is_refused_wherever_an_operator_did_not_allow_it() -> None:
    metadata = put(endpoints("pay", 80, address="169.254.169.254"))

    for environment in ("default", "prod"):
        with pytest.raises(InputInvalid, match="does not take such content") as failure:
            apply(metadata, environment=environment)
        assert [each.code for each in failure.value.findings] == ["XDS1076"]

    environment_update(key="prod", policy=EnvironmentPolicy(content=ContentPolicy(link_local=Stance.ALLOW)), actor=DANA)
    assert apply(metadata, environment="prod").findings == ()


def test_environment_update__row_older_than_a_kind_of_content__is_not_changed_by_what_it_means_already() -> None:
    stored = {kind: "warn" for kind in KINDS if kind != "link_local"}
    Environment.objects.filter(key="prod").update(content=stored)
    policy = environment_get(key="prod").policy

    same = environment_update(key="prod", policy=policy, actor=DANA)
    other = environment_update(key="prod", policy=replace(policy, deep_validation=True), actor=DANA)

    assert not same.change_id
    assert other.change_id
    assert Change.objects.get(public_id=other.change_id).message == "deep validation turned on"
    assert Environment.objects.get(key="prod").content == stored


def test_resource_restore__earlier_revision__comes_back_as_a_new_one() -> None:
    apply(put(cluster("pay")))
    apply(put(cluster("pay", connect_timeout="2s")))

    made = resource_restore(environment_key="default", kind=CLUSTER, name="pay", revision=1, actor=DANA)
    again = resource_restore(environment_key="default", kind=CLUSTER, name="pay", revision=1, actor=DANA)

    now = resource_get(environment_key="default", kind=CLUSTER, name="pay")
    assert (now.revision, now.any_bytes) == (3, parsed(cluster("pay")).any_bytes)
    assert (made.changed, again.changed) == (True, False)


def test_resource_restore__deleted_secret__comes_back_with_its_content() -> None:
    apply(put(tls_secret("key", "hunter2hunter2")))
    apply(Delete(SECRET, "key"))

    resource_restore(environment_key="default", kind=SECRET, name="key", revision=1, actor=DANA)

    assert b"hunter2hunter2" in resource_get(environment_key="default", kind=SECRET, name="key").any_bytes


def test_resource_restore__what_cannot_come_back__says_why() -> None:
    apply(put(ON_LOOPBACK))
    apply(put(cluster("pay")))
    apply(Delete(CLUSTER, "pay"))
    environment_update(key="default", policy=EnvironmentPolicy(), actor=DANA)
    apply(Delete(parsed(ON_LOOPBACK).type, "pay"))

    with pytest.raises(InputInvalid, match="is its deletion"):
        resource_restore(environment_key="default", kind=CLUSTER, name="pay", revision=2, actor=DANA)
    with pytest.raises(NotFound, match="no revision r9"):
        resource_restore(environment_key="default", kind=CLUSTER, name="pay", revision=9, actor=DANA)
    with pytest.raises(InputInvalid, match="does not take such content"):
        resource_restore(environment_key="default", kind=parsed(ON_LOOPBACK).type, name="pay", revision=1, actor=DANA)


def orphans(made: ChangeMade) -> list[tuple[str, str]]:
    return [(each.resource_name, each.detail) for each in made.findings if each.code == "XDS3007"]


def test_delete__something_still_refers_to_it__is_made_with_a_warning() -> None:
    apply(put(cluster("pay")), put(route("edge", "pay")), put(route("side", "pay")))

    planned = change_plan(environment_key="default", edits=[Delete(CLUSTER, "pay")], asker=None)
    made = apply(Delete(CLUSTER, "pay"))

    assert made.changed
    assert orphans(made) == [
        ("pay", "The cluster 'pay' is deleted, but it is still needed by route 'edge', route 'side'.")
    ]
    assert planned.findings == made.findings


def test_delete__a_rename_that_left_somebody_behind__names_the_new_name() -> None:
    apply(put(cluster("pay")), put(route("edge", "pay")), put(route("side", "pay")))

    made = apply(put(cluster("pay-v2")), put(route("edge", "pay-v2")), Delete(CLUSTER, "pay"))

    assert orphans(made) == [("pay", "The cluster 'pay' is deleted, but it is still needed by route 'side'.")]
    assert [each.hint for each in made.findings if each.code == "XDS3007"] == [
        "If it was renamed to 'pay-v2', point them to the new name."
    ]


def test_delete__together_with_all_that_referred_to_it__says_nothing() -> None:
    apply(put(cluster("pay")), put(route("edge", "pay")))
    apply(put(route("other", "pay")), environment="prod")

    made = apply(Delete(CLUSTER, "pay"), put(route("edge", "else")))

    assert orphans(made) == []


def test_delete__a_new_resource_of_the_same_change_refers_to_it__is_warned_of() -> None:
    apply(put(cluster("pay")))

    made = apply(Delete(CLUSTER, "pay"), put(route("edge", "pay")))

    assert [name for name, _ in orphans(made)] == ["pay"]
