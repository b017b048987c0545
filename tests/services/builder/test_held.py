"""One resource that cannot be served among many that can: who is told what (law 1, P7), and equal bytes (P6)."""

import os
import subprocess
import sys

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.memory import Memory
from controlplane.builder.models import Build, HeldResource
from controlplane.builder.selectors import ChangeState, change_progress, held_names
from controlplane.builder.services import build
from controlplane.catalog.models import Environment
from controlplane.catalog.services import change_apply, proofs_record
from controlplane.catalog.values import ChangeMade, Delete, ProvenContent, Put
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.selectors import snapshot_of_name
from tests.support.manifests import cluster, endpoints, listener, parsed, route
from tests.support.principals import somebody
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE
from xdscore.snapshot import Served, WithheldName

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)


def put(*trees: dict[str, object]) -> ChangeMade:
    return change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def delete(kind: object, name: str) -> ChangeMade:
    chosen = CLUSTER if kind is CLUSTER else ROUTE
    return change_apply(environment_key="default", edits=[Delete(chosen, name)], actor=DANA)


def rebuild(memory: Memory | None = None) -> Build:
    build(environment_id=Environment.objects.get(key="default").pk, memory=memory or Memory())
    return Build.objects.latest("id")


def prove(tree: dict[str, object], word: str, name: str) -> None:
    version = parsed(tree).content_hash.hex()[:16]
    proofs_record(proven=[ProvenContent("default", word, name, version)])


def entry(kind: object, name: str) -> Served | WithheldName | None:
    chosen = {"cluster": CLUSTER, "route": ROUTE, "listener": LISTENER}[str(kind)]
    snapshot = snapshot_of_name(environment_key="default", kind=chosen, name=name)
    assert snapshot is not None
    state = snapshot.type_state(chosen)
    return state.withheld.get(name) or state.served.get(name)


def test_build__one_of_1000_refers_to_nothing__the_other_999_are_published_and_it_runs_what_was_proven(
    database: str,
) -> None:
    put(route("shop", "c0"), cluster("c0"))
    rebuild()
    prove(route("shop", "c0"), "route", "shop")

    made = put(route("shop", "nowhere"), *(cluster(f"c{number}", connect_timeout="2s") for number in range(999)))
    other = put(cluster("later"))
    record = rebuild()

    assert SnapshotRow.objects.latest("epoch").counts == {"cluster": 1_000, "route": 1}
    old = parsed(route("shop", "c0")).content_hash.hex()[:16]
    served = entry("route", "shop")
    assert isinstance(served, Served)
    assert served.content.version == old
    progress = change_progress(public_id=made.change_id)
    (held,) = progress.held
    assert (progress.state, held.type, held.name, held.served) == (ChangeState.PUBLISHED, "route", "shop", True)
    assert held.reason == "it refers to a Cluster that does not exist"
    (finding,) = held.findings
    assert (finding.code, finding.pointer) == ("XDS2002", "/virtual_hosts/0/routes/0/route/cluster")
    assert finding.detail == "It refers to the Cluster 'nowhere', which does not exist in 'default'."
    assert change_progress(public_id=other.change_id).held == ()
    keys = {("route", "shop"), ("cluster", "c1")}
    assert held_names(environment_key="default", keys=keys).keys() == {("route", "shop")}
    assert (record.held_count, record.finding_counts["XDS2002"]) == (1, 1)


def test_build__never_proven_and_dangling__is_withheld_until_the_name_exists(database: str) -> None:
    memory = Memory()
    made = put(listener("in", "shop", 8080), route("shop", "pay"))
    rebuild(memory)

    assert entry("route", "shop") == WithheldName("it refers to a Cluster that does not exist")
    assert isinstance(entry("listener", "in"), Served)
    assert [each.served for each in change_progress(public_id=made.change_id).held] == [False]

    put(cluster("pay"))
    rebuild(memory)

    assert isinstance(entry("route", "shop"), Served)
    assert change_progress(public_id=made.change_id).held == ()
    assert not HeldResource.objects.exists()


def test_build__what_clients_proved_loses_its_target__is_served_on_and_told(database: str) -> None:
    put(route("shop", "pay"), cluster("pay"))
    rebuild()
    prove(route("shop", "pay"), "route", "shop")

    delete(CLUSTER, "pay")
    record = rebuild()

    assert isinstance(entry("route", "shop"), Served)
    assert record.held_count == 0
    assert [(each["code"], each["resource_name"], each["severity"]) for each in record.findings][:1] == [
        ("XDS2002", "shop", "error")
    ]


def test_build__two_listeners_on_one_address__the_first_is_served(database: str) -> None:
    put(route("r", "c"), cluster("c"), listener("first", "r", 8080))
    made = put(listener("second", "r", 8080))
    rebuild()

    assert isinstance(entry("listener", "first"), Served)
    assert entry("listener", "second") == WithheldName("another Listener has its address already")
    (held,) = change_progress(public_id=made.change_id).held
    assert held.findings[0].detail == (
        "It claims address tcp 127.0.0.1 port 8080, which the Listener 'first' has already."
    )


def test_build__quarantine_and_proofs_between_builds__are_seen_by_a_builder_that_remembers(database: str) -> None:
    warm = Memory()
    put(cluster("a"), cluster("b", eds=True), endpoints("b", 80))
    rebuild(warm)
    prove(cluster("a"), "cluster", "a")
    put(cluster("a", connect_timeout="9s"))
    rebuild(warm)
    remembered = SnapshotRow.objects.latest("epoch").root_id
    delete(CLUSTER, "b")
    rebuild(warm)
    put(cluster("b", eds=True))
    rebuild(Memory())

    served = entry("cluster", "a")
    assert isinstance(served, Served)
    assert served.proven is not None
    assert SnapshotRow.objects.latest("epoch").root_id == remembered


_ROOT_IN_A_PROCESS = """
from controlplane.builder.stages.assemble import assemble
from controlplane.builder.stages.fallback import resolve
from controlplane.catalog.heads import Head
from xdscore.chunks import encode_root
from xdscore.snapshot import Content, content_hash
def content(number): return Content(bytes([number % 256]) * 16, str(number), number)
heads = {}
for number in set(map(str, range(300))):
    key = ("route", f"r{number}")
    targets = tuple({("cluster", f"c{int(number) % 7}"), ("cluster", f"c{int(number) % 11}")})
    heads[key] = Head(key, content(int(number)), references=targets, revision=int(number))
    key = ("listener", f"l{number}")
    heads[key] = Head(key, content(int(number)), revision=int(number), claims=(f"port {int(number) % 40}",))
for number in range(9):
    heads["cluster", f"c{number}"] = Head(("cluster", f"c{number}"), content(number))
print(content_hash(encode_root(content_hash(part) for part in assemble(resolve(heads).entries).parts)).hex())
"""


def test_stages__three_hash_seeds__make_one_root() -> None:
    roots = {
        subprocess.run(
            [sys.executable, "-c", _ROOT_IN_A_PROCESS],
            env=os.environ | {"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed, locale, zone in [("0", "C", "UTC"), ("1", "C.UTF-8", "Asia/Tokyo"), ("4242", "C", "America/Lima")]
    }

    assert len(roots) == 1


_ROOTS: dict[str, str] = {}


@pytest.mark.xdist_group("same root on both databases")
def test_build__same_changes_on_both_databases__make_the_same_root_and_versions(database: str) -> None:
    put(route("shop", "pay"), cluster("pay", eds=True), endpoints("pay", 80), listener("in", "shop", 8080))
    put(listener("other", "shop", 8080), route("gone", "nowhere"))
    prove(route("shop", "pay"), "route", "shop")
    delete(ROUTE, "gone")
    rebuild()

    _ROOTS[database] = SnapshotRow.objects.latest("epoch").root_id

    # The parameter runs in one process: the second of the two finds the first's.
    assert len(set(_ROOTS.values())) == 1, _ROOTS
