"""Says for how long an incident may be muted, and what a mute covers. Pure.

A mute keeps quiet what people know already. Refusals of one revision are one incident whatever clients say
(`fingerprint`), so that the words decide here: what clients refuse in other words than before ends the mute.
"""

from collections.abc import Collection, Mapping
from datetime import timedelta
from hashlib import blake2b
from typing import Final

from xdscore.client_kinds import ClientFamily

MUTES: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "8h": timedelta(hours=8),
    "1d": timedelta(days=1),
    "1w": timedelta(weeks=1),
}
"""The times that pages offer, by the words in which people may ask for them."""
MAX_MUTE: Final = timedelta(days=30)  # what is quiet for longer is forgotten: ignore it instead
MAX_MUTE_REASON_CHARS: Final = 400
# A client may invent words without end: where there are so many, one more is no news.
MAX_WORDINGS: Final = 50


def wording(family: ClientFamily, normalised: str) -> str:
    """A short text that is equal for refusals in the same words by clients of the same family. `normalised`: the result
    of `normalised_text`.
    """
    return blake2b(f"{family.value}\0{normalised}".encode(), digest_size=6).hexdigest()


def joined(known: str, said: Collection[str]) -> str:
    """The wordings in `known`, separated by blanks, with those of `said` behind them; at most MAX_WORDINGS."""
    return " ".join(tuple(dict.fromkeys((*known.split(), *sorted(said))))[:MAX_WORDINGS])


def first_new(known: str, said: Collection[str]) -> str | None:
    """The first wording in `said` that is none of the `known` ones of an incident; None without one, and for an
    incident that has as many as are told apart.
    """
    held = known.split()
    return None if len(held) >= MAX_WORDINGS else next((each for each in said if each not in held), None)
