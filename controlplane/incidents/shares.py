"""Says whether one more incident may be opened, on whose share, and what makes room for it. Pure.

The words of a refusal are a client's own, so somebody could make incidents without end. Each identity, else address,
has a share of those that are told apart, and all of them together have a bound. What is beyond is kept in shared
incidents, which say which resources it is about (`recording`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Admission:
    """A permission to open one more incident, which counts on the share of `accountable`. Where `from_whom` is not
    None, one of theirs must be resolved first; one that only words told apart, if `words_only`.
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
    """The ways in which one more incident may be opened, the best first; none where it may not be.

    `held`: how many unresolved ones each has opened; `spent`: those and the ones it opened within the last hour, so
    that none are opened and resolved without end; `whose`: who says this one. What is `proven` takes the place of what
    the same identity told apart by words alone, so that a data plane that raves does not hide what its own fleet
    refuses. Where there is no room in all, whoever has most gives way to whoever has fewer, never the other way.
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
