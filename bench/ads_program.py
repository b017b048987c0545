"""`python -m bench.ads_program`: the product's ADS process, with two doors for measurements.

Nothing of it is another one than in `manage.py ads`. On SIGUSR1 it prints how many tasks its event loop has, and how
many threads Python has; gRPC has a pool of its own, which grows and shrinks by itself. On SIGUSR2 what streams learn
goes nowhere, and on the next one it is kept again, which it says each time: what facts cost is the difference.
"""

import asyncio
import dataclasses
import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adsserver.ports import Facts

HELD_WORD = "tasks and threads:"
FACTS_WORD = "facts are"
KEPT, LOST = "kept", "lost"


class _SwitchedFacts:
    """Keeper of facts about streams (adsserver.ports.Facts) that can be switched off and on. Switching replaces its
    methods, so that a call costs nothing more.
    """

    def __init__(self, facts: "Facts") -> None:
        self._facts = facts
        self._kept = False
        self.switch()

    def switch(self) -> None:
        """Drop all facts from now on, if they are kept so far; keep them, if they are dropped so far."""
        from adsserver.ports import Facts  # noqa: PLC0415

        self._kept = not self._kept
        # Of whatever kinds there are: a fact that nobody takes would end its stream.
        for name in (each for each in vars(Facts) if not each.startswith("_")):
            setattr(self, name, getattr(self._facts, name) if self._kept else _forget)
        print(FACTS_WORD, KEPT if self._kept else LOST, flush=True)


def _forget(*_learnt: object) -> None:
    """Do nothing with a fact: what a switched-off method does."""


async def _serve() -> None:
    # The settings of the process are named before anything of the product is imported.
    from django.conf import settings  # noqa: PLC0415

    from adsserver.ports import Directory  # noqa: PLC0415
    from adsserver.running.opener import Store  # noqa: PLC0415
    from adsserver.running.process import serve_here  # noqa: PLC0415
    from controlplane.config.home import home_create  # noqa: PLC0415
    from controlplane.ops.management.commands.ads import ads_config, open_store  # noqa: PLC0415

    loop = asyncio.get_running_loop()

    def open_switched(on_directory: Callable[[Directory], None]) -> Store:
        store = open_store(on_directory)
        facts = _SwitchedFacts(store.facts)
        loop.call_soon_threadsafe(loop.add_signal_handler, signal.SIGUSR2, facts.switch)
        return dataclasses.replace(store, facts=facts)  # type: ignore[type-var]

    home_create(settings.PARLEY)
    loop.add_signal_handler(signal.SIGUSR1, _tell)
    await serve_here(ads_config(settings.PARLEY), open_switched)


def _tell() -> None:
    print(HELD_WORD, len(asyncio.all_tasks()), threading.active_count(), flush=True)


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings_ads"
    asyncio.run(_serve())
