"""Any other text names nobody. To search it for names would be to guess: a name may be an English word (law 3)."""

from xdscore.nacktext.reading import NOBODY, Nack, Reading


def recognises(_nack: Nack) -> bool:
    """Always true: this dialect takes every text that no other one recognised."""
    return True


def read(_nack: Nack) -> Reading:
    """A reading that blames nobody."""
    return NOBODY
