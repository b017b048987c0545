"""The door between ADS and the control plane's database: snapshots come in, facts go out. The only place here that
knows Django.

`loader` is the thread that follows the published snapshots, `contents` holds their bytes, `facts` writes what streams
learnt.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from adsserver.ports import Contents, Directory, Facts
from adsserver.store.contents import ContentMemory
from adsserver.store.facts import FactBuffer
from adsserver.store.hints import HintListener
from adsserver.store.loader import Loader, LoaderStatus


@dataclass(frozen=True, slots=True)
class Store:
    """Everything ADS has from, and gives to, the control plane. Threads run between `start` and `stop`."""

    contents: Contents
    facts: Facts
    _loader: Loader = field(repr=False)
    _hints: HintListener = field(repr=False)
    _fact_buffer: FactBuffer = field(repr=False)

    def start(self) -> None:
        """Start following snapshots and writing facts."""
        self._fact_buffer.start()
        self._loader.start()
        self._hints.start()

    def stop(self, timeout_s: float) -> None:
        """Stop, after the facts learnt so far were written; at most this long."""
        self._hints.stop()
        self._loader.stop()
        self._fact_buffer.stop(timeout_s)

    def hint(self) -> None:
        """Look for new snapshots now."""
        self._loader.look_now()

    def status(self) -> LoaderStatus:
        """What is loaded and whether the database answers; safe from any thread."""
        return self._loader.status()


def open_store(on_directory: Callable[[Directory], None]) -> Store:
    """A store over the configured database. `on_directory` is called from the loader's thread, each time."""
    contents = ContentMemory()
    loader = Loader(contents=contents, on_directory=on_directory)
    facts = FactBuffer()
    return Store(contents, facts, loader, HintListener(loader.look_now), facts)
