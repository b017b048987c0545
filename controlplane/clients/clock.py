"""The one clock by which facts of many machines can be compared: the database's (decisions part 5)."""

from datetime import datetime
from typing import cast

from django.db import connection
from django.utils import timezone


def database_now() -> datetime:
    """The time now by the clock of the database. SQLite has none of its own: it is a file of this machine."""
    if connection.vendor == "sqlite":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cast(datetime, cursor.fetchone()[0])
