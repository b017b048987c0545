"""History cannot be rewritten: the database refuses it, on both databases (reliability threat 24, decisions D23)."""

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Change, Revision
from controlplane.catalog.services import change_apply, environment_create, environment_delete
from controlplane.catalog.values import EnvironmentPolicy, Put
from controlplane.database.append_only import guarded_models, maintenance
from controlplane.journal.models import AuditEvent
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.access import Effect

DANA = somebody("dana", ADMIN_SCOPES)


def put(name: str, environment: str = "default") -> None:
    change_apply(environment_key=environment, edits=[Put(parsed(cluster(name)))], actor=DANA)


def run(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_guarded_models__history__is_among_them() -> None:
    assert {Change, Revision, AuditEvent} <= set(guarded_models())


@pytest.mark.parametrize("table", [model._meta.db_table for model in guarded_models()])
def test_append_only__update_or_delete_by_sql__is_refused_and_leaves_the_rows(database: str, table: str) -> None:
    put("a")
    rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "a"), actor=DANA)

    for statement in (f"UPDATE {table} SET id = id", f"DELETE FROM {table}"):  # noqa: S608  our own tables
        with pytest.raises(IntegrityError, match=f"rows of {table} are only ever added"):
            run(statement)

    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608
        assert cursor.fetchone()[0] > 0


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)  # SQLite has none: DELETE above is its TRUNCATE
def test_append_only__truncate__is_refused(database: str) -> None:
    put("a")

    with pytest.raises(IntegrityError, match="only ever added"):
        run("TRUNCATE journal_auditevent CASCADE")


def test_append_only__by_the_orm__is_refused_too(database: str) -> None:
    put("a")
    row = Revision.objects.get()

    with pytest.raises(IntegrityError, match="only ever added"):
        row.save()
    with pytest.raises(IntegrityError, match="only ever added"):
        Change.objects.update(author="mallory")


def test_maintenance__ends_with_its_block_and_with_its_transaction(database: str) -> None:
    put("a")

    with transaction.atomic(), maintenance():
        Revision.objects.update(at=Revision.objects.get().at)
    with transaction.atomic():
        with maintenance():
            pass
        with pytest.raises(IntegrityError), transaction.atomic():
            Revision.objects.update(version="x")
    with pytest.raises(ZeroDivisionError), transaction.atomic(), maintenance():
        raise ZeroDivisionError

    with pytest.raises(IntegrityError):
        Revision.objects.update(version="x")


def test_maintenance__outside_of_a_transaction__is_refused(database: str) -> None:
    with pytest.raises(RuntimeError, match="needs a transaction"), maintenance():
        pass


def test_environment_delete__takes_its_history_along_and_nothing_else(database: str) -> None:
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=DANA)
    put("a", "prod")
    put("a")

    environment_delete(key="prod", actor=DANA)

    assert set(Revision.objects.values_list("resource__environment__key", flat=True)) == {"default"}
    with pytest.raises(IntegrityError):
        Revision.objects.all().delete()


def test_guards_ensure__triggers_lost_with_a_rebuilt_table__are_back_after_migrate(database: str) -> None:
    put("a")
    run(
        "DROP TRIGGER catalog_revision_no_update"
        if database == "sqlite"
        else "DROP TRIGGER catalog_revision_append_only ON catalog_revision"
    )
    Revision.objects.update(eds_name="x")

    call_command("migrate", verbosity=0, interactive=False)

    with pytest.raises(IntegrityError):
        Revision.objects.update(eds_name="y")
