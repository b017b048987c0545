"""Under which keys things are stored: noted by whoever writes, and held against every process."""

from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.key_marks import KeysForeign, key_marks, keys_permit
from controlplane.catalog.models import KeyMark
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.fitness.judging import Check
from controlplane.fitness.models import ProcessState
from controlplane.fitness.selectors import processes_unfit
from controlplane.fitness.watch import Watch
from controlplane.snapshots.models import SnapshotRow
from tests.support.keys import FOREIGN_KEY, NEW_KEY, UseKeys
from tests.support.manifests import cluster, parsed, tls_secret
from tests.support.principals import somebody

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"]),
    pytest.mark.usefixtures("database"),
]

DANA = somebody("dana", ADMIN_SCOPES)


def put(*trees: dict[str, object]) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def test_key_mark__of_the_first_key__is_noted_once_by_whoever_signs(use_keys: UseKeys, old_key: bytes) -> None:
    mark = use_keys(old_key)
    put(cluster("a"))
    builds_sweep()
    put(cluster("b"))
    builds_sweep()

    assert key_marks() == (mark,)


def test_build__with_foreign_keys__signs_nothing(use_keys: UseKeys, old_key: bytes) -> None:
    put(cluster("a"))
    builds_sweep()
    put(cluster("b"))
    use_keys(FOREIGN_KEY)

    with pytest.raises(KeysForeign):
        builds_sweep()

    assert SnapshotRow.objects.count() == 1


def test_secret__with_foreign_keys__is_refused_in_words_and_nothing_is_stored(
    use_keys: UseKeys, old_key: bytes
) -> None:
    mark = use_keys(old_key)
    keys_permit()
    foreign = use_keys(FOREIGN_KEY)

    with pytest.raises(KeysForeign) as caught:
        put(tls_secret("pay", "hunter2"))

    assert caught.value.status == 503
    assert foreign in caught.value.detail
    assert mark in caught.value.detail
    assert key_marks() == (mark,)


def test_rotation__new_key_in_front__is_noted_and_the_old_one_forgotten_when_all_is_moved(
    use_keys: UseKeys, old_key: bytes
) -> None:
    before = use_keys(old_key)
    put(tls_secret("pay", "hunter2"))
    builds_sweep()
    after = use_keys(NEW_KEY, old_key)
    keys_permit()
    meanwhile = key_marks()

    call_command("rotate_keys")

    assert (meanwhile, key_marks()) == ((after, before), (after,))
    use_keys(old_key)
    with pytest.raises(KeysForeign):
        keys_permit()


def test_rotation__keys_lost_for_good__are_given_up_only_when_asked(use_keys: UseKeys, old_key: bytes) -> None:
    use_keys(old_key)
    put(tls_secret("pay", "hunter2"))
    builds_sweep()
    after = use_keys(NEW_KEY)
    with pytest.raises(SystemExit):
        call_command("rotate_keys")
    kept = key_marks()

    with pytest.raises(SystemExit):
        call_command("rotate_keys", "--give-up-lost")

    assert after not in kept
    assert key_marks() == (after,)
    keys_permit()


def test_migration__of_an_installation_that_has_data__notes_the_keys_it_names(
    use_keys: UseKeys, old_key: bytes
) -> None:
    before = use_keys(old_key)
    put(tls_secret("pay", "hunter2"))
    builds_sweep()
    after = use_keys(NEW_KEY, old_key)
    put(cluster("b"))
    builds_sweep()
    KeyMark.objects.all().delete()
    migration = import_module("controlplane.catalog.migrations.0016_key_marks")

    with connection.schema_editor() as editor:
        migration.note_what_is_there(apps, editor)

    assert key_marks() == (after, before)


def test_prepare__with_foreign_keys__refuses_in_words(
    use_keys: UseKeys, old_key: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    use_keys(old_key)
    keys_permit()
    use_keys(FOREIGN_KEY)

    with pytest.raises(SystemExit) as caught:
        call_command("prepare")

    assert caught.value.code == 2
    assert "open nothing of what this database holds" in capsys.readouterr().err


def test_look__of_a_process_that_fits__notes_its_key_and_tells_that_it_is_well(
    use_keys: UseKeys, old_key: bytes
) -> None:
    mark = use_keys(old_key)

    state = Watch("worker").look()

    assert (state.looked, state.wrong) == (True, ())
    assert key_marks() == (mark,)
    assert [(row.role, row.wrong) for row in ProcessState.objects.all()] == [("worker", [])]


def test_look__keys_that_are_foreign__are_told_to_the_others_and_called_back(use_keys: UseKeys, old_key: bytes) -> None:
    use_keys(old_key)
    keys_permit()
    use_keys(FOREIGN_KEY)
    ended: list[bool] = []

    state = Watch("worker", on_foreign_keys=lambda: ended.append(True)).look()

    assert "open nothing" in state.foreign_keys
    assert state.reasons == (state.foreign_keys,)
    assert ended == [True]
    assert [(each.role, each.check) for each in processes_unfit()] == [("worker", Check.KEYS.value)]


def test_look__that_lacks_the_newest_key__warns_and_stays_ready(use_keys: UseKeys, old_key: bytes) -> None:
    use_keys(old_key)
    keys_permit()
    use_keys(NEW_KEY, old_key)
    keys_permit()
    use_keys(old_key)

    state = Watch("ads").look()

    assert (state.reasons, state.foreign_keys) == ((), "")
    assert "lacks the newest key" in state.warnings[0]
