"""What an ADS process holds of the published snapshots, without its server."""

from pathlib import Path

from adsserver.ports import Directory
from adsserver.store.contents import ContentMemory
from adsserver.store.last_good import LastGood
from adsserver.store.loader import Loader
from xdscore.resource_types import CLUSTER
from xdscore.snapshot import Snapshot


class Replica:
    """The snapshots and contents that an ADS process would hold; `look` is one round of its loader."""

    def __init__(self, cache: Path) -> None:
        self.contents = ContentMemory()
        self.offered: list[Directory] = []
        self.last_good = LastGood(cache)
        self.loader = Loader(contents=self.contents, last_good=self.last_good, on_directory=self.offered.append)

    def look(self) -> "Replica":
        while self.loader._look():
            pass
        return self

    @property
    def directory(self) -> Directory:
        return self.offered[-1]

    def snapshot(self, environment: str = "default") -> Snapshot:
        return self.directory.snapshots[environment]

    def timeouts(self, environment: str = "default") -> dict[str, bytes]:
        """The name and bytes of every cluster of the environment."""
        served = self.snapshot(environment).type_state(CLUSTER).served
        return {name: self.contents.any_bytes(entry.content) for name, entry in served.items()}
