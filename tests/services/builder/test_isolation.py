"""One type cannot be built: it keeps what it had and is flagged, the others advance (reliability F29)."""

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.memory import Memory
from controlplane.builder.models import Build, BuildOutcome
from controlplane.builder.selectors import change_progress, environments_failing
from controlplane.builder.services import build
from controlplane.catalog.models import Blob, Environment, Reference, Revision
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import ChangeMade, Put
from controlplane.journal.models import DomainEvent
from controlplane.notify.catalogue import KINDS, wording_of
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.selectors import entries_published
from tests.support.figures import measured
from tests.support.manifests import cluster, parsed, route
from tests.support.principals import somebody
from xdscore.chunks import ChunkError
from xdscore.snapshot import Served, WithheldName

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)


def put(*trees: dict[str, object]) -> ChangeMade:
    return change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def rebuild() -> Build:
    build(environment_id=Environment.objects.get(key="default").pk, memory=Memory())
    return Build.objects.latest("id")


def break_route(name: str) -> None:
    """What no write makes and no build can work with: a reference to a type that this version does not know."""
    revision = Revision.objects.filter(resource__name=name, resource__type="route").latest("pk")
    Reference.objects.create(revision=revision, to_type="of-tomorrow", to_name="x")


def version(tree: dict[str, object]) -> str:
    return parsed(tree).content_hash.hex()[:16]


def served(word: str, name: str) -> str:
    entry = entries_published(environment_key="default")[word, name]
    assert isinstance(entry, Served)
    return entry.content.version


def test_build__one_type_fails__it_keeps_its_content_and_is_flagged_and_others_advance(database: str) -> None:
    put(route("shop", "c"), route("other", "c"), cluster("c"))
    rebuild()
    made = put(route("shop", "d"), route("new", "c"), cluster("c", connect_timeout="9s"), cluster("d"))
    break_route("shop")

    record = rebuild()

    assert record.outcome == BuildOutcome.PUBLISHED
    assert served("cluster", "c") == version(cluster("c", connect_timeout="9s"))
    assert served("route", "shop") == version(route("shop", "c"))
    assert served("route", "other") == version(route("other", "c"))
    # It exists, so no client is told that it does not.
    entry = entries_published(environment_key="default")["route", "new"]
    assert entry == WithheldName("its type could not be built")
    held = {each.name: each for each in change_progress(public_id=made.change_id).held}
    assert {name: each.served for name, each in held.items()} == {"shop": True, "new": False}
    assert [(each.code, each.detail) for each in held["shop"].findings] == [
        ("XDS2009", "Its type could not be built (KeyError).")
    ]
    assert record.finding_counts == {"XDS2009": 2}
    assert environments_failing() == 1
    measured(held=len(held))
    event = DomainEvent.objects.get(kind="build.failed")
    said = wording_of(KINDS[event.kind], environment="default", payload=event.payload, public_url="https://p").text
    assert "built without these types: route (KeyError). They stay as they were" in said


def test_build__the_type_can_be_built_again__the_next_build_serves_what_was_written(database: str) -> None:
    put(route("shop", "c"), cluster("c"))
    rebuild()
    put(route("shop", "d"), cluster("d"))
    break_route("shop")
    rebuild()
    Reference.objects.filter(to_type="of-tomorrow").delete()

    put(cluster("e"))
    record = rebuild()

    assert served("route", "shop") == version(route("shop", "d"))
    assert (record.held, environments_failing()) == ([], 0)


def test_build__every_type_fails__nothing_is_published(database: str) -> None:
    put(route("shop", "c"))
    break_route("shop")

    with pytest.raises(KeyError):
        rebuild()

    assert Build.objects.latest("id").outcome == BuildOutcome.FAILED
    assert not SnapshotRow.objects.exists()


def test_build__one_type_fails_and_what_was_published_is_altered__nothing_is_published(database: str) -> None:
    put(route("shop", "c"), cluster("c"))
    rebuild()
    row = SnapshotRow.objects.latest("epoch")
    put(cluster("d"))
    break_route("shop")
    SnapshotRow.objects.filter(pk=row.pk).update(root=Blob.objects.exclude(pk=row.root_id).first())

    with pytest.raises(ChunkError, match="does not hold"):
        rebuild()

    assert SnapshotRow.objects.count() == 1
