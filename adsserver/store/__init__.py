"""The door between ADS and the control plane's database: snapshots come in, facts go out. The only place here that
knows Django.

`loader` is the thread that follows the published snapshots, `contents` holds their bytes, `last_good` keeps them on
disk for a start without the database, `facts` writes what streams learnt, `sent_secrets` says what must not stay in it,
`fleet` reads back what those of all servers did, `tail` tells those who watch what they do now. Whether this process
fits the installation is the word of `controlplane.fitness`.
"""

import multiprocessing
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from django.conf import settings

from adsserver.config import AdsConfigError
from adsserver.ports import ContentKeeper, Directory, Facts, FleetStatus
from adsserver.store.contents import ContentMemory
from adsserver.store.facts import FactBuffer
from adsserver.store.fleet import Fleet
from adsserver.store.hints import HintListener
from adsserver.store.last_good import LastGood
from adsserver.store.loader import Loader, LoaderStatus
from adsserver.store.tail import Tap, TappedFacts
from controlplane.broker.client import redis_client
from controlplane.broker.hints import hint_judge
from controlplane.clients.facts import replica_place
from controlplane.config.home import Home
from controlplane.fitness.watch import Watch

# Who starts without the database serves from disk within ten seconds (P9): it is not waited for any longer.
_FIRST_LOOK_S = 2.0


@dataclass(frozen=True, slots=True)
class Store:
    """The door between ADS and the control plane's database: snapshots come in, facts about streams go out. Threads run
    between `start` and `stop`.
    """

    contents: ContentKeeper
    facts: Facts
    fleet: FleetStatus
    _loader: Loader = field(repr=False)
    _hints: HintListener = field(repr=False)
    _fact_buffer: FactBuffer = field(repr=False)
    _tap: Tap = field(repr=False)
    _watch: Watch = field(repr=False)

    def start(self) -> None:
        """Start following snapshots and writing facts."""
        self._fact_buffer.start()
        self._loader.start()
        self._tap.start()
        self._hints.start()

    def stop(self, timeout_s: float) -> None:
        """Stop within `timeout_s` seconds, after the facts that wait were written to the database and what was served
        was written to disk.
        """
        self._hints.stop()
        self._tap.stop()
        self._watch.stop()
        self._loader.stop(timeout_s)
        self._fact_buffer.stop(timeout_s)
        self._loader.wait_ended()

    def hint(self) -> None:
        """Look for new snapshots now, not at the next interval."""
        self._loader.look_now()

    def status(self) -> LoaderStatus:
        """The status of the store: what is loaded, whether the database answers, whether facts reach it, and whether
        this process fits the installation. Safe from any thread.
        """
        loader, facts, fitness = self._loader.status(), self._fact_buffer.status(), self._watch.state
        detail = "; ".join(filter(None, (loader.detail, facts.detail, *fitness.warnings)))
        return replace(loader, detail=detail, unfit=fitness.reasons)


def open_store(on_directory: Callable[[Directory], None]) -> Store:
    """A store over the configured database. `on_directory` is called, from a thread of the store, with every new
    directory (environments, snapshots, tokens).

    Raises AdsConfigError when the database can be read and nothing in it was made with this process's keys.
    """
    watch = Watch("ads")
    if foreign := watch.start(wait_s=_FIRST_LOOK_S).foreign_keys:
        raise AdsConfigError(foreign)
    contents = ContentMemory()
    last_good = LastGood(Home(settings.PARLEY.home).cache)
    fleet = Fleet(contents)

    def hand_over(directory: Directory) -> None:
        on_directory(directory)  # the streams come first
        fleet.observe(directory)

    loader = Loader(contents=contents, last_good=last_good, on_directory=hand_over)
    facts = FactBuffer(serving=loader.serving, contents=contents, place=_place(), tell_judge=hint_judge)
    tap = Tap(contents, _published, events_per_s=settings.PARLEY.limits.tail_events_per_s)
    hints = HintListener(loader.look_now, tap.announced)
    return Store(contents, TappedFacts(facts, tap), fleet, loader, hints, facts, tap, watch)


def _published(channel: str, data: bytes) -> int:
    """Send bytes to a channel of the broker; returns how many listened."""
    return redis_client().publish(channel, data)


def _place() -> str:
    """A text that names this process among all ADS processes: its machine, directory, address and worker. A process
    started later with the same text takes over from it; empty, for none, when the port is a free one.
    """
    config = settings.PARLEY
    if not config.ads_address.port:
        return ""
    worker = multiprocessing.current_process().name
    return replica_place(socket.gethostname(), str(config.home), str(config.ads_address), worker)
