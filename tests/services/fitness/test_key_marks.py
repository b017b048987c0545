"""Under which keys things are stored: noted by whoever writes, and held against every process."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.key_marks import KeysForeign, key_marks, keys_permit
from controlplane.catalog.lasting import lasting_keys_forget
from controlplane.catalog.models import KeyMark
from controlplane.catalog.sealing import key_ring
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.config.home import encryption_keys
from controlplane.fitness.judging import Check
from controlplane.fitness.models import ProcessState
from controlplane.fitness.selectors import processes_unfit
from controlplane.fitness.watch import Watch
from controlplane.snapshots.models import SnapshotRow
from tests.support.manifests import cluster, parsed, tls_secret
from tests.support.principals import somebody

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"]),
    pytest.mark.usefixtures("database"),
]

DANA = somebody("dana", ADMIN_SCOPES)
NEW, FOREIGN = bytes(range(32)), bytes(range(32, 64))
Use = Callable[..., str]


@pytest.fixture
def use(settings: Settings) -> Iterator[Use]:
    """Go on as a process started with these keys would; the mark of the first one."""

    def take(*keys: bytes) -> str:
        settings.PARLEY = replace(settings.PARLEY, encryption_keys=keys)
        key_ring.cache_clear()
        lasting_keys_forget()
        return key_ring().marks[0]

    yield take
    key_ring.cache_clear()
    lasting_keys_forget()


@pytest.fixture
def old(settings: Settings) -> bytes:
    return encryption_keys(settings.PARLEY)[0]


def put(*trees: dict[str, object]) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def test_key_mark__of_the_first_key__is_noted_once_by_whoever_signs(use: Use, old: bytes) -> None:
    mark = use(old)
    put(cluster("a"))
    builds_sweep()
    put(cluster("b"))
    builds_sweep()

    assert key_marks() == (mark,)


def test_build__with_foreign_keys__signs_nothing(use: Use, old: bytes) -> None:
    put(cluster("a"))
    builds_sweep()
    put(cluster("b"))
    use(FOREIGN)

    with pytest.raises(KeysForeign):
        builds_sweep()

    assert SnapshotRow.objects.count() == 1


def test_secret__with_foreign_keys__is_refused_in_words_and_nothing_is_stored(use: Use, old: bytes) -> None:
    mark = use(old)
    keys_permit()
    foreign = use(FOREIGN)

    with pytest.raises(KeysForeign) as caught:
        put(tls_secret("pay", "hunter2"))

    assert caught.value.status == 503
    assert foreign in caught.value.detail
    assert mark in caught.value.detail
    assert key_marks() == (mark,)


def test_rotation__new_key_in_front__is_noted_and_the_old_one_forgotten_when_all_is_moved(use: Use, old: bytes) -> None:
    before = use(old)
    put(tls_secret("pay", "hunter2"))
    builds_sweep()
    after = use(NEW, old)
    keys_permit()
    meanwhile = key_marks()

    call_command("rotate_keys")

    assert (meanwhile, key_marks()) == ((after, before), (after,))
    use(old)
    with pytest.raises(KeysForeign):
        keys_permit()


def test_rotation__keys_lost_for_good__are_given_up_only_when_asked(use: Use, old: bytes) -> None:
    use(old)
    put(tls_secret("pay", "hunter2"))
    builds_sweep()
    after = use(NEW)
    with pytest.raises(SystemExit):
        call_command("rotate_keys")
    kept = key_marks()

    with pytest.raises(SystemExit):
        call_command("rotate_keys", "--give-up-lost")

    assert after not in kept
    assert key_marks() == (after,)
    keys_permit()


def test_migration__of_an_installation_that_has_data__notes_the_keys_it_names(use: Use, old: bytes) -> None:
    before = use(old)
    put(tls_secret("pay", "hunter2"))
    builds_sweep()
    after = use(NEW, old)
    put(cluster("b"))
    builds_sweep()
    KeyMark.objects.all().delete()
    migration = import_module("controlplane.catalog.migrations.0016_key_marks")

    with connection.schema_editor() as editor:
        migration.note_what_is_there(apps, editor)

    assert key_marks() == (after, before)


def test_prepare__with_foreign_keys__refuses_in_words(use: Use, old: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    use(old)
    keys_permit()
    use(FOREIGN)

    with pytest.raises(SystemExit) as caught:
        call_command("prepare")

    assert caught.value.code == 2
    assert "open nothing of what this database holds" in capsys.readouterr().err


def test_look__of_a_process_that_fits__notes_its_key_and_tells_that_it_is_well(use: Use, old: bytes) -> None:
    mark = use(old)

    state = Watch("worker").look()

    assert (state.looked, state.wrong) == (True, ())
    assert key_marks() == (mark,)
    assert [(row.role, row.wrong) for row in ProcessState.objects.all()] == [("worker", [])]


def test_look__keys_that_are_foreign__are_told_to_the_others_and_called_back(use: Use, old: bytes) -> None:
    use(old)
    keys_permit()
    use(FOREIGN)
    ended: list[bool] = []

    state = Watch("worker", on_foreign_keys=lambda: ended.append(True)).look()

    assert "open nothing" in state.foreign_keys
    assert state.reasons == (state.foreign_keys,)
    assert ended == [True]
    assert [(each.role, each.check) for each in processes_unfit()] == [("worker", Check.KEYS.value)]


def test_look__that_lacks_the_newest_key__warns_and_stays_ready(use: Use, old: bytes) -> None:
    use(old)
    keys_permit()
    use(NEW, old)
    keys_permit()
    use(old)

    state = Watch("ads").look()

    assert (state.reasons, state.foreign_keys) == ((), "")
    assert "lacks the newest key" in state.warnings[0]
