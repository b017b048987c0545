"""How long the fact thread may look for secrets in what clients say: a part of its time, shared by who is accountable.

A text about many secrets takes a tenth of a second to read, and the same thread writes all facts and says that this
process lives. So reading is paid for in time, by whoever is accountable and out of what all have together. Those whose
identity is verified have theirs apart from those who are but an address: of addresses somebody may have many.
"""

from collections.abc import Callable
from typing import Final

from xdscore.shares import of_identity
from xdscore.token_bucket import TokenBucket

# Seconds of reading: of each second, and at once where nothing was read for a while. Both groups together take at most
# a third of the time; one of either, a twentieth. The last text may take longer than what is left, and is paid for
# later.
_OF_ALL_PER_S: Final = 0.15
_OF_ALL_AT_ONCE: Final = 1.0
_OF_ONE_PER_S: Final = 0.05
_OF_ONE_AT_ONCE: Final = 0.25
# Beyond so many it is looked who has read nothing for a while: they are forgotten, and are as new.
_REMEMBERED: Final = 1_000


class ReadingTime:
    """The time that is left for looking for secrets in NACK texts, in all and for each caller. `clock` returns seconds
    on a clock that only goes forward. For one thread.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        now = clock()
        self._of_all = {verified: TokenBucket(_OF_ALL_PER_S, _OF_ALL_AT_ONCE, now) for verified in (True, False)}
        self._of_one: dict[str, TokenBucket] = {}

    def is_left(self, accountable: str) -> bool:
        """Whether there is time left to read one more NACK text of this caller, given by its key."""
        now = self._clock()
        own = self._of_one.get(accountable)
        return self._of_all[of_identity(accountable)].debt_s(now) == 0 and (own is None or own.debt_s(now) == 0)

    def spend(self, accountable: str, since: float) -> None:
        """Count the time from `since`, on the clock, until now as spent on a NACK text of this caller."""
        now = self._clock()
        own = self._of_one.get(accountable)
        if own is None:
            if len(self._of_one) >= _REMEMBERED:
                self._of_one = {who: each for who, each in self._of_one.items() if not each.is_full(now)}
            own = self._of_one[accountable] = TokenBucket(_OF_ONE_PER_S, _OF_ONE_AT_ONCE, since)
        for bucket in (own, self._of_all[of_identity(accountable)]):
            bucket.spend(now - since, now)

    def now(self) -> float:
        """The present time by the clock, in seconds."""
        return self._clock()
