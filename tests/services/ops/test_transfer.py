"""From SQLite to PostgreSQL with everything, or with nothing and a word on why: both real databases."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.models import LoginAttempt, RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, Role
from controlplane.accounts.services import api_token_create, client_token_create
from controlplane.catalog.models import Change, Environment, Revision
from controlplane.catalog.services import environment_default_ensure
from controlplane.config.loading import load
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from controlplane.journal.models import AuditEvent
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.services.channels import channel_create
from controlplane.ops.backups import BackupError, backup_restore
from controlplane.ops.transfer.copying import tables
from tests.services.incidents.fleet import DANA, Fleet, held, publish
from tests.support.databases import connected_to, postgresql_empty
from tests.support.keys import ENCRYPTION_KEYS
from tests.support.manifests import cluster, tls_secret
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

Rows = dict[str, list[tuple[Any, ...]]]
# A restore begins a new lineage, and says so in the audit log.
RENEWED = {"catalog_environment": {"lineage", "generation"}}
ADDED_TO = "journal_auditevent"
UNGUARDED = "INSERT INTO parley_maintenance VALUES (1)"


@dataclass(frozen=True)
class Source:
    """A backup of SQLite, and every row that the installation had, by table."""

    file: Path
    rows: Rows
    generation: int

    def last(self, table: str) -> int:
        """The highest number that a row of it ever had."""
        with closing(sqlite3.connect(self.file)) as database:
            found = database.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
            return int(found.fetchone()[0])


@pytest.fixture(scope="module")
def source(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Source]:
    file = tmp_path_factory.mktemp("transfer") / "parley.backup"
    with django_db_blocker.unblock():
        environment_default_ensure()
        _fill()
        with closing(sqlite3.connect(connection.settings_dict["NAME"])) as one, closing(sqlite3.connect(file)) as other:
            one.backup(other)
        yield Source(file, every_row(), Environment.objects.get().generation)
        call_command("flush", verbosity=0, interactive=False)


def _fill() -> None:
    """Something of everything that an installation has."""
    publish(cluster("pay"), cluster("ledger"), tls_secret("key", "hush"))
    fleet = Fleet(3, identity="spiffe://shop/{number}")
    fleet.accept(held("pay", 1), held("ledger", 1))
    digest()
    publish(cluster("pay", connect_timeout="7s"))
    fleet.refuse(fleet.send(held("pay", 2)), "Invalid path: /no/such", suspects=(held("pay", 2),))
    digest()
    group = GroupDraft("shop", (Selector(node_id="shop-*"),), Trust.DECLARED)
    group_create(environment_key="default", draft=group, actor=DANA)
    rule = RuleDraft(Effect.DENY, "vault*", client_groups=("shop",), message="ask the vault team ✋")
    rule_create(environment_key="default", draft=rule, actor=DANA)
    api_token_create(name="pipeline", scopes=ADMIN_SCOPES, actor=DANA)
    client_token_create(subject="shop", environment="default", actor=DANA)
    wanted = NewChannel("pager", ChannelKind.WEBHOOK, "https://hooks.example.com/parley", ("default",))
    channel_create(wanted=wanted, actor=DANA)
    person = User.objects.create_user("sam", "sam@example.com", "correct horse battery")
    people = Group.objects.create(name="shop")
    person.groups.add(people)
    people.permissions.set(Permission.objects.order_by("-pk")[:2])
    RoleGrant.objects.create(group=people, environment="default", role=Role.OPERATOR.value)
    session = SessionStore()
    session["colour"] = "green"
    session.save()
    for number in range(3):
        LoginAttempt.objects.create(key=str(number))
    LoginAttempt.objects.exclude(key="0").delete()


def every_row() -> Rows:
    """What the ORM reads, from whichever database it is connected to."""
    found: Rows = {}
    for model in apps.get_models(include_auto_created=True):
        changed = RENEWED.get(model._meta.db_table, set())
        names = [each.attname for each in model._meta.concrete_fields if each.name not in changed]
        rows = model._base_manager.values_list(*names)
        found[model._meta.db_table] = sorted((tuple(map(_bytes, row)) for row in rows), key=repr)
    return found


def _bytes(value: object) -> object:
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.fixture
def postgresql(migrated_postgresql: str, transactional_db: None) -> Iterator[str]:
    """Connected to a PostgreSQL with every table and nothing in it; its URL."""
    with connected_to(migrated_postgresql):
        postgresql_empty()
        yield migrated_postgresql


def restore(file: Path, url: str, *, heard: Callable[[str], object] = str.strip) -> list[str]:
    """The lines it said; `heard` is told each at once."""
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        heard(line)

    config = load({"DATABASE_URL": url, "PARLEY_ENCRYPTION_KEYS": ENCRYPTION_KEYS}, directory=settings.PARLEY.home)
    assert backup_restore(config=config, file=file, say=say) == ()
    return said


def refusal(file: Path, url: str, *, heard: Callable[[str], object] = str.strip) -> str:
    """Why it was refused; nothing may be there then, and what `migrate` made is as it was."""
    before = every_row()
    assert {name for name, rows in before.items() if rows} <= {"auth_permission", "django_content_type"}
    with pytest.raises(BackupError) as refused:
        restore(file, url, heard=heard)
    assert every_row() == before
    return str(refused.value)


@pytest.fixture
def altered(source: Source, tmp_path: Path) -> Callable[..., Path]:
    """The backup after some SQL that no program of ours would run."""

    def alter(*statements: str) -> Path:
        file = tmp_path / "altered.backup"
        shutil.copy(source.file, file)
        with closing(sqlite3.connect(file)) as database, database:
            for statement in (UNGUARDED, *statements, "DELETE FROM parley_maintenance"):
                database.execute(statement)
        return file

    return alter


def test_tables__of_a_migrated_sqlite__are_all_moved_but_its_own(source: Source) -> None:
    with closing(sqlite3.connect(source.file)) as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    assert names - {each.name for each in tables()} == {"django_migrations", "sqlite_sequence", "parley_maintenance"}


def test_transfer__of_an_installation__has_every_row_and_says_what_was_compared(
    source: Source, postgresql: str
) -> None:
    said = restore(source.file, postgresql)

    there = every_row()
    renewed = [row for row in there[ADDED_TO] if row not in source.rows[ADDED_TO]]
    assert len(renewed) == 1
    there[ADDED_TO] = [row for row in there[ADDED_TO] if row not in renewed]
    assert there == source.rows
    used = {name: len(rows) for name, rows in source.rows.items() if rows}
    assert {"incidents_incident", "clients_nack", "access_accessrule", "notify_channel"} <= used.keys()
    assert [line.split()[:2] for line in said[:-1]] == [[f"{name}:", str(used[name])] for name in used]
    assert said[-1] == (
        f"{sum(used.values())} rows of {len(source.rows)} tables were read back: counts and hashes are those of the "
        "backup."
    )


def test_transfer__begins_a_new_lineage_in_the_same_transaction(source: Source, postgresql: str) -> None:
    restore(source.file, postgresql)

    environment = Environment.objects.get(key="default")
    event = AuditEvent.objects.filter(verb="environment.lineage_renewed").latest("pk")
    assert environment.generation == source.generation + 1
    assert event.detail["after"] == str(environment.lineage)
    assert event.detail["reason"] == "restored from parley.backup"


def test_transfer__new_rows__have_numbers_that_no_row_ever_had(source: Source, postgresql: str) -> None:
    restore(source.file, postgresql)
    change = publish(cluster("new"))

    last = source.last("accounts_loginattempt")
    assert max(row[0] for row in source.rows["accounts_loginattempt"]) == last - 2  # two were there, and are forgotten
    assert LoginAttempt.objects.create(key="new").pk == last + 1
    assert Change.objects.get(public_id=change).pk > max(row[0] for row in source.rows["catalog_change"])
    assert Revision.objects.filter(resource__name="new").count() == 1


def test_transfer__history__stays_guarded(source: Source, postgresql: str) -> None:
    restore(source.file, postgresql)

    with psycopg.connect(postgresql) as other, pytest.raises(psycopg.errors.RestrictViolation):
        other.execute("DELETE FROM catalog_revision")


def test_transfer__of_what_postgresql_cannot_keep__names_each_place_and_keeps_nothing(
    source: Source, altered: Callable[..., Path], postgresql: str
) -> None:
    change, event = source.last("catalog_change"), source.last("journal_auditevent")
    file = altered(
        f"UPDATE catalog_change SET author = printf('%.200c', 'x') WHERE id = {change}",  # noqa: S608  numbers
        f"UPDATE journal_auditevent SET subject = 'a' || char(0), detail = '[\"\\u0000\"]' WHERE id = {event}",  # noqa: S608
    )

    said = refusal(file, postgresql)

    assert "Change it where it came from, and back up anew:" in said
    assert f"\n  catalog_change, id {change}: author has 200 characters, and may have 150." in said
    assert f"\n  journal_auditevent, id {event}: subject has a character U+0000" in said
    assert f"\n  journal_auditevent, id {event}: detail has a character U+0000" in said


def test_transfer__of_a_row_that_refers_to_nothing__is_refused_with_its_table(
    altered: Callable[..., Path], postgresql: str
) -> None:
    said = refusal(altered("DELETE FROM catalog_blob WHERE hash IN (SELECT blob_id FROM catalog_revision)"), postgresql)

    assert "PostgreSQL said at catalog_" in said
    assert "violates foreign key constraint" in said


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        (
            "DELETE FROM django_migrations WHERE app = 'catalog' AND name LIKE '0015%'",
            "by an older version of Parley, whose tables lack catalog.0015_principals. Bring it up to date first",
        ),
        (
            "INSERT INTO django_migrations (app, name, applied) VALUES ('catalog', '9999_later', '2030-01-01')",
            "this one does not know catalog.9999_later. Restore it with the version that made it",
        ),
        ("ALTER TABLE catalog_change DROP COLUMN owner", "The backup cannot be read: no such column"),
    ],
)
def test_transfer__of_other_tables_than_this_version_has__says_which_and_what_to_do(
    altered: Callable[..., Path], postgresql: str, statement: str, word: str
) -> None:
    assert word in refusal(altered(statement), postgresql)


def test_transfer__of_an_installation_that_had_djangos_admin_pages__is_as_good(
    altered: Callable[..., Path], postgresql: str
) -> None:
    had = "INSERT INTO django_migrations (app, name, applied) VALUES ('admin', '0001_initial', '2026-01-01')"

    restore(altered(had, "CREATE TABLE django_admin_log (id INTEGER PRIMARY KEY)"), postgresql)

    assert every_row()["auth_user"]


def test_transfer__into_a_database_that_holds_something__is_refused_and_changes_nothing(
    source: Source, postgresql: str
) -> None:
    environment_default_ensure()
    before = every_row()

    with pytest.raises(BackupError, match="is not empty: there are rows in journal_auditevent, catalog_environment"):
        restore(source.file, postgresql)

    assert every_row() == before


def test_transfer__while_somebody_uses_the_database__is_refused(source: Source, postgresql: str) -> None:
    with psycopg.connect(postgresql) as other:
        other.execute("LOCK TABLE clients_replica IN ROW EXCLUSIVE MODE")  # as an ADS process that writes
        said = refusal(source.file, postgresql)

    assert "Stop everything that was started with it" in said


def test_transfer__rows_that_arrive_otherwise_than_they_left__are_noticed_and_not_kept(
    source: Source, postgresql: str
) -> None:
    with psycopg.connect(postgresql, autocommit=True) as other:
        other.execute(
            "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.owner = 'x'; RETURN NEW; END $$"
        )
        other.execute("CREATE TRIGGER meddle BEFORE INSERT ON catalog_resource FOR EACH ROW EXECUTE FUNCTION meddle()")
        try:
            said = refusal(source.file, postgresql)
        finally:
            other.execute("DROP FUNCTION meddle CASCADE")

    assert said.startswith("What PostgreSQL has of catalog_resource is not what the backup has: 3 rows with hash ")


@pytest.mark.parametrize("last", ["  catalog_change:", "tables were read back"])
def test_transfer__connection_ends_midway_or_at_the_end__keeps_nothing_and_may_be_run_again(
    source: Source, postgresql: str, last: str
) -> None:
    def cut(line: str) -> None:
        if last in line:
            with psycopg.connect(postgresql) as other:
                other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    said = refusal(source.file, postgresql, heard=cut)

    assert said.startswith("PostgreSQL said")
    assert restore(source.file, postgresql)[-1].endswith("counts and hashes are those of the backup.")
