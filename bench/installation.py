"""A Parley installation of a scenario's own: an empty home, an empty SQLite, no variable of the operator's."""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FOREIGN = ("DATABASE_URL", "REDIS_URL")


@contextmanager
def installation(**variables: str) -> Iterator[Path]:
    """Set a fresh home in this process's environment, and so in that of its children; yields its path, and removes it
    at the end.

    `variables` are set beside it (`DATABASE_URL=…`). Nothing of Django is loaded: `start_django` does that.
    """
    for name in [name for name in os.environ if name.startswith("PARLEY_") or name in _FOREIGN]:
        del os.environ[name]
    home = Path(tempfile.mkdtemp(prefix="parley-bench-"))
    os.environ.update({"PARLEY_HOME": str(home), "DJANGO_SETTINGS_MODULE": "controlplane.settings", **variables})
    # Hints have nowhere to go here; a scenario that wants them starts a broker and names it.
    os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:1/0")
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def start_django(*, migrate: bool) -> None:
    """Load the product in this process, within `installation`. `migrate` makes the tables first."""
    # The settings read the environment when they are loaded, so nothing of Django may be imported before.
    import django  # noqa: PLC0415
    from django.conf import settings  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415

    from controlplane.config.home import home_create  # noqa: PLC0415

    django.setup()
    logging.disable(logging.WARNING)  # what is logged per build belongs into no table, and hints find no broker
    home_create(settings.PARLEY)
    if migrate:
        call_command("migrate", verbosity=0, interactive=False)
