"""What the fleet must be told: the oracle's own account of what was written. Pure.

A write that was answered with success counts. One that was refused, or never answered, may have been kept or not: until
somebody reads it, both are right. What may happen to clients is counted from check to check: which clusters were taken
away how often, and which errors some state of that time orders.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from envoy.config.cluster.v3 import cluster_pb2

from tests.support.watchers import HAS, Report

# The listeners that every client asks for: one there never is, one that comes and goes, one that is there and is denied
# at times. The last one's name is also a cluster's.
MISSING, FLAPPING, GUARDED = "missing", "flapping", "guarded"
LISTENERS = (MISSING, FLAPPING, GUARDED)
# What nobody may be sure of is named by its cluster, or is FLAPPING or this.
RULE = "the rule"
_NOT_FOUND, _PERMISSION_DENIED = 5, 7
_SHOWN = 5


class Truth:
    """`clusters` has the seconds of each cluster's connect timeout: no two writes have the same."""

    def __init__(self) -> None:
        self.clusters: dict[str, int] = {}
        self.denied = False
        self.flapping = False
        self.unsure: set[str] = set()
        self._gone: Counter[str] = Counter()
        # At first nothing is there.
        self._errors = {(name, _NOT_FOUND) for name in LISTENERS}

    def write(self, name: str, seconds: int | None, *, sure: bool) -> None:
        """A cluster was written, or with None removed."""
        if seconds is None:
            self._gone[name] += 1
        if not sure:
            self.unsure.add(name)
        elif seconds is None:
            self.clusters.pop(name, None)
        else:
            self.clusters[name] = seconds

    def deny(self, denied: bool, *, sure: bool) -> None:
        """The rule that denies GUARDED was switched."""
        if denied:
            self._gone[GUARDED] += 1
            self._errors.add((GUARDED, _PERMISSION_DENIED))
        if sure:
            self.denied = denied
        else:
            self.unsure.add(RULE)

    def flap(self, there: bool, *, sure: bool) -> None:
        """The listener FLAPPING was written or removed."""
        if not there:
            self._errors.add((FLAPPING, _NOT_FOUND))
        if sure:
            self.flapping = there
        else:
            self.unsure.add(FLAPPING)

    def shown(self) -> dict[str, int]:
        """The clusters that a client has."""
        return {name: seconds for name, seconds in self.clusters.items() if not (self.denied and name == GUARDED)}

    def answers(self) -> dict[str, int]:
        """What each listener is to a client."""
        return {
            MISSING: _NOT_FOUND,
            FLAPPING: HAS if self.flapping else _NOT_FOUND,
            GUARDED: _PERMISSION_DENIED if self.denied else HAS,
        }

    def checked(self) -> None:
        """The fleet has been compared: what happens from now on is counted anew."""
        self._gone.clear()
        self._errors = {(name, code) for name, code in self.answers().items() if code != HAS}

    def is_told(self, told: Report, *, clients: int) -> bool:
        """Whether every client is connected and has exactly this, all of them the same bytes."""
        return (
            told.connected == clients
            and len(told.views) == 1
            and told.answers.keys() == {frozenset(self.answers().items())}
            and _seconds(next(iter(told.views))) == self.shown()
        )

    def violations(self, told: Report, *, clients: int, ends: Iterable[str]) -> list[str]:
        """What was told since the last check that nothing ordered. `ends` are the ways in which streams may end."""
        found = [
            f"cluster {name} vanished {times} times from {clients} clients; it was taken away {self._gone[name]} times"
            for name, times in told.vanished.items()
            if times > clients * self._gone[name]
        ]
        orders = self._errors | {(name, code) for name, code in self.answers().items() if code != HAS}
        found += [
            f"error {code} for {name} came {times} times, which no decision ordered"
            for (name, code), times in told.errors.items()
            if (name, code) not in orders
        ]
        found += [f"{times} streams ended with {code}" for code, times in told.ends.items() if code not in set(ends)]
        return found

    def difference(self, told: Report) -> str:
        """How the fleet's state differs from this, for a person."""
        parts = [f"{told.connected} clients have a stream"]
        for view, clients in told.views.most_common(_SHOWN):
            have, want = _seconds(view), self.shown()
            parts.append(
                f"{clients} clients lack {sorted(want.keys() - have.keys())[:_SHOWN]}, have besides "
                f"{sorted(have.keys() - want.keys())[:_SHOWN]}, have another revision of "
                f"{sorted(name for name in have.keys() & want.keys() if have[name] != want[name])[:_SHOWN]}"
            )
        answers = {str(sorted(each)): count for each, count in told.answers.items()}
        return "; ".join([*parts, f"listeners are {answers}, and should be {sorted(self.answers().items())}"])


def _seconds(view: frozenset[tuple[str, bytes]]) -> dict[str, int]:
    return {name: _timeout_s(data) for name, data in view}


@lru_cache(maxsize=10_000)
def _timeout_s(data: bytes) -> int:
    return int(cluster_pb2.Cluster.FromString(data).connect_timeout.seconds)
