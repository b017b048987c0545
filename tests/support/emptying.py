"""Empties a test's database: only the tables that hold anything, and not what Django itself writes about the models,
which is the same for every test. Django's own `flush` writes that anew each time, a seventh of many a test's time.
"""

from typing import Final

from django.db import connections, transaction

from controlplane.database.append_only import maintenance

_ABOUT_MODELS: Final = frozenset({"auth_permission", "django_content_type", "django_migrations"})


def database_empty(using: str) -> None:
    """Delete every row that a test may have written to the database with this alias, append-only ones included."""
    connection = connections[using]
    tables = [
        connection.ops.quote_name(name)
        for name in connection.introspection.django_table_names(only_existing=True, include_views=False)
        if name not in _ABOUT_MODELS
    ]
    with transaction.atomic(using=using), maintenance(using=using), connection.cursor() as cursor:
        looks = (f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in tables)  # noqa: S608  Django's names
        cursor.execute(" UNION ALL ".join(looks))
        full = [name for (name,) in cursor.fetchall()]
        if full and connection.vendor == "sqlite":
            cursor.execute("PRAGMA defer_foreign_keys = ON")
        for name in full:
            cursor.execute(f"DELETE FROM {name}")  # noqa: S608
