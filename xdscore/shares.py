"""Shares room fairly between those who fill it. Pure.

Whoever fills a bounded place first, or most, must not push the others out: where more is there than fits, everybody
keeps what is below one level, and only those above it give way (max-min fairness). A share is counted by who is
accountable for it: the verified identity of a data plane, else the address it came from, never what it says of itself.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, TypeVar

from xdscore.callers import caller_key

K = TypeVar("K")

ACCOUNTABLE_CHARS: Final = 100
# Stands for whoever is accountable where data planes are and no single one is, or is known to be. No key is like it.
SEVERAL: Final = "several"
_DIGEST_CHARS: Final = 32
_IDENTITY: Final = "id"


def accountable(*, identity: str, peer: str) -> str:
    """A key, of at most 100 characters, for the caller against whom everything counts that a stream brings.

    `identity` is the verified one, empty where nothing is verified; then it is the address in `peer`, spelled as gRPC
    does: `ipv4:192.0.2.1:40000` (`callers.caller_key`). Callers without either share the empty key.
    """
    key = caller_key(identity, peer)
    if key.identity:
        return _short(_IDENTITY, key.identity)
    return _short("at", key.address) if peer else ""


def of_identity(accountable: str) -> bool:
    """Whether this key, made by the function `accountable`, stands for a verified identity and not for an address."""
    return accountable.startswith(f"{_IDENTITY} ")


def _short(kind: str, text: str) -> str:
    key = f"{kind} {text}"
    if len(key) <= ACCOUNTABLE_CHARS and key.isprintable():
        return key
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_CHARS // 2).hexdigest()
    cut = "".join(each for each in key[: ACCOUNTABLE_CHARS - _DIGEST_CHARS - 1] if each.isprintable())
    return f"{cut} {digest}"


def fair_level(held: Iterable[int], room: int) -> int:
    """The most that each holder may keep so that all together fit into `room`.

    `held`: how much each holder has. 0 where there are more holders than room: then not even one fits for each.
    """
    waiting = sorted(held)
    left = room
    for at, count in enumerate(waiting):
        level = left // (len(waiting) - at)
        if count > level:
            return max(level, 0)
        left -= count
    return max(waiting, default=0)


def beyond(held: Sequence[tuple[K, str]], room: int) -> list[K]:
    """The items to drop so that the rest fits into `room`. `held` has (item, holder), oldest first; of holders with
    more than their fair share the oldest items are dropped. When there are more holders than room, the oldest of all.
    """
    if len(held) <= room:
        return []
    left = Counter(who for _, who in held)
    level = fair_level(left.values(), room)
    if not level:
        return [what for what, _ in held[: len(held) - max(room, 0)]]
    gone = []
    for what, who in held:
        if left[who] > level:
            left[who] -= 1
            gone.append(what)
    return gone


def in_turns(held: Sequence[tuple[K, str]]) -> list[K]:
    """The items in turns: the first of each holder, then the second of each, and so on. `held` has (item, holder)."""
    turn: Counter[str] = Counter()
    placed = []
    for at, (what, whose) in enumerate(held):
        placed.append((turn[whose], at, what))
        turn[whose] += 1
    return [what for _, _, what in sorted(placed, key=lambda each: each[:2])]
