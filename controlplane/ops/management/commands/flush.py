"""Django's `flush`, let past the triggers of append-only tables: whoever empties a whole database means it."""

from django.core.management.commands import flush
from django.db import transaction

from controlplane.database.append_only import maintenance


class Command(flush.Command):
    """Empties every table."""

    def handle(self, **options: object) -> None:
        """Empty the tables in one transaction, which alone may change append-only rows."""
        using = str(options["database"])
        with transaction.atomic(using=using), maintenance(using=using):
            super().handle(**options)
