"""Asks the database what `judging` judges by: a handful of small reads. On the way the process takes over the sets of
descriptors that others added.
"""

import pkgutil
import time
from functools import cache
from pathlib import Path

from django.apps import apps
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from controlplane.catalog.key_marks import key_marks
from controlplane.catalog.sealing import key_ring
from controlplane.clients.clock import database_now
from controlplane.fitness.judging import Finding, judge_clock, judge_keys, judge_schema, judge_sets
from controlplane.schemas.following import schema_follow
from xdscore.schema.pool import SchemaError


def wrong_here() -> tuple[Finding, ...]:
    """Find everything that is wrong with this process now. The thread's database connection stays open. Raises
    DatabaseError.
    """
    schema = wrong_tables()
    if any(each.stops for each in schema):
        return schema  # nothing else can be asked of it
    return (*schema, *judge_keys(key_ring().marks, key_marks()), *_wrong_clock(), *_wrong_sets())


def wrong_tables() -> tuple[Finding, ...]:
    """Find everything that is wrong with the tables of those Django applications that this process has; ADS has not
    all. Raises DatabaseError.
    """
    known = _known_migrations()
    labels = {each.partition(".")[0] for each in known}
    applied = {f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations() if app in labels}
    return judge_schema(applied, known)


def _wrong_sets() -> tuple[Finding, ...]:
    """Read by the sets of descriptors that the database has, and find what keeps this process from it."""
    try:
        schema_follow()
    except SchemaError as error:
        return judge_sets(error.problems[0])
    return ()


def _wrong_clock() -> tuple[Finding, ...]:
    before = time.time()
    theirs = database_now().timestamp()
    after = time.time()
    return judge_clock((before + after) / 2 - theirs, (after - before) / 2)


@cache
def _known_migrations() -> frozenset[str]:
    """The migrations that this code has, as app.name. They are read from file names, because loading them takes a
    second.
    """
    found: set[str] = set()
    for app in apps.get_app_configs():
        folder = Path(app.path) / "migrations"
        found.update(
            f"{app.label}.{module.name}" for module in pkgutil.iter_modules([str(folder)]) if module.name[0] not in "_~"
        )
    return frozenset(found)
