"""A store for whole ADS processes in tests: publishes one cluster, from a thread like a real one."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from envoy.config.cluster.v3 import cluster_pb2

from adsserver.ports import Directory
from tests.support.ads import Catalogue, MemoryContents, MemoryFacts
from tests.support.ads_fleet import MemoryFleet


@dataclass(frozen=True)
class Status:
    """The status of a store, in the shape of adsserver.running.opener.StoreStatus."""

    loaded: Mapping[str, tuple[str, int]]
    database_ok: bool = True
    detail: str = ""
    unfit: tuple[str, ...] = ()


class MemoryStore:
    """A store in memory, in the shape of adsserver.running.opener.Store."""

    def __init__(self, on_directory: Callable[[Directory], None]) -> None:
        self.contents = MemoryContents()
        self.facts = MemoryFacts()
        self.fleet = MemoryFleet()
        self._on_directory = on_directory
        self._loaded: dict[str, tuple[str, int]] = {}

    def start(self) -> None:
        threading.Thread(target=self._load, daemon=True).start()

    def stop(self, timeout_s: float) -> None:  # noqa: ARG002 - the port has it
        print(f"store stopped after {len(self.facts.closed_streams)} streams", flush=True)  # noqa: T201

    def status(self) -> Status:
        return Status(dict(self._loaded))

    def _load(self) -> None:
        time.sleep(0.1)
        self._on_directory(Catalogue(self.contents).publish(cluster_pb2.Cluster(name="a")))
        self._loaded["default"] = ("test", 1)


def open_store(on_directory: Callable[[Directory], None]) -> MemoryStore:
    return MemoryStore(on_directory)
