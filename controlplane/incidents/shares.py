"""Says whether one more incident may be opened, on whose share, and what makes room for it. Pure.

The words of a refusal are a client's own, so somebody could make incidents without end. Each identity, else address,
has a share of those that are told apart, and all of them together have a bound. What is beyond is kept in shared
incidents, which say which resources it is about (`recording`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Admission:
    """The permission to open one more incident.

    `accountable`: the key of whoever is accountable for it.
    `from_whom`: the key of whoever must have one incident resolved for it first; None: nobody.
    `words_only`: whether only an incident may be resolved that differs from others by the words of clients alone.
    """

    accountable: str
    from_whom: str | None = None
    words_only: bool = False


def admissions(
    *,
    held: Mapping[str, int],
    spent: Mapping[str, int],
    whose: Iterable[str],
    proven: bool,
    per_identity: int,
    in_all: int,
) -> tuple[Admission, ...]:
    """The ways in which one more incident may be opened, the best first; empty where none may be.

    `held`: how many unresolved incidents each party has opened; `spent`: with those that it opened within the last
        hour, so that none are opened and resolved without end. `whose`: the parties of this refusal.
    `per_identity`, `in_all`: the most that one party, and all together, may have.

    A `proven` incident takes the place of one of the same party that only words told apart. Where there are too many in
    all, the party with most gives way to one with fewer, never the other way.
    """
    accusers = tuple(dict.fromkeys(whose))
    full = sum(held.values()) >= in_all
    within = tuple(each for each in accusers if spent.get(each, 0) < per_identity)
    found = []
    if not full:
        found += [Admission(each) for each in within]
    else:
        noisiest = max(held, key=lambda each: held[each])
        found += [Admission(each, noisiest) for each in within if held.get(each, 0) + 1 < held[noisiest]]
    if proven:
        found += [Admission(each, each, words_only=True) for each in accusers if held.get(each, 0)]
    return tuple(found)
