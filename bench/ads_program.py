"""`python -m bench.ads_program [--without-facts]`: the product's ADS process, with a door for measurements.

Nothing of it is another one than in `manage.py ads`. On SIGUSR1 it prints how many tasks its event loop has, and how
many threads Python has; gRPC has a pool of its own, which grows and shrinks by itself. With `--without-facts` what
streams learn goes nowhere: what facts cost is the difference.
"""

import asyncio
import dataclasses
import os
import signal
import sys
import threading
from collections.abc import Callable

HELD_WORD = "tasks and threads:"
WITHOUT_FACTS = "--without-facts"


class _NoFacts:
    """Where facts go when nobody wants them (adsserver.ports.Facts)."""

    def opened(self, stream: object) -> None:
        """Forget it."""

    def sent(self, stream: object, response: object) -> None:
        """Forget it."""

    def learnt(self, stream: object, fact: object) -> None:
        """Forget it."""

    def closed(self, stream: object, cause: str) -> None:
        """Forget it."""


async def _serve(*, facts: bool) -> None:
    # The settings of the process are named before anything of the product is imported.
    from django.conf import settings  # noqa: PLC0415

    from adsserver.opener import Store  # noqa: PLC0415
    from adsserver.ports import Directory  # noqa: PLC0415
    from adsserver.process import serve_here  # noqa: PLC0415
    from controlplane.home import home_create  # noqa: PLC0415
    from controlplane.ops.management.commands.ads import ads_config, open_store  # noqa: PLC0415

    def open_without(on_directory: Callable[[Directory], None]) -> Store:
        return dataclasses.replace(open_store(on_directory), facts=_NoFacts())  # type: ignore[type-var]

    home_create(settings.PARLEY)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _tell)
    await serve_here(ads_config(settings.PARLEY), open_store if facts else open_without)


def _tell() -> None:
    print(HELD_WORD, len(asyncio.all_tasks()), threading.active_count(), flush=True)


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings_ads"
    asyncio.run(_serve(facts=WITHOUT_FACTS not in sys.argv[1:]))
