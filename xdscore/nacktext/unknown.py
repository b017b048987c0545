"""Any other text names nobody. To search it for names would be to guess: a name may be an English word (law 3)."""

from xdscore.nacktext.reading import NOBODY, Nack, Reading


def recognises(_nack: Nack) -> bool:
    """Whether the text can be read by this reader. Always True: it takes what no other reader recognised."""
    return True


def read(_nack: Nack) -> Reading:
    """A reading that blames nobody."""
    return NOBODY
