"""Any other text names nobody. To search it for names would be to guess: a name may be an English word (law 3)."""

from xdscore.nacktext.reading import NOBODY, Nack, Reading


def recognises(_nack: Nack) -> bool:
    """Every text."""
    return True


def read(_nack: Nack) -> Reading:
    """Nobody."""
    return NOBODY
