"""Django's `flush`, let past the triggers of append-only tables: whoever empties a whole database means it."""

from django.core.management.commands import flush
from django.db import transaction

from controlplane.database.append_only import maintenance


class Command(flush.Command):
    """Empties every table."""

    help = "Empty every table of the database, append-only ones included. What it held is gone: `backup` first."

    def handle(self, **options: object) -> None:
        """Empty all tables, append-only ones included, in one transaction."""
        using = str(options["database"])
        with transaction.atomic(using=using), maintenance(using=using):
            super().handle(**options)
