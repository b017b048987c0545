"""Says which NACKs are one incident. Pure.

Where the server knows whom a NACK blames, the fingerprint is a function of type, resource and revision: the words are
the client's own, and one that invents words, or refuses on behalf of another family, is still at the same fault. Where
only words tell, it is one of type, resource, client family and the text without its noise (texts.md 9.5). The algorithm
is part of it and stored with the incident: another algorithm opens new incidents and leaves the old ones as they are.
"""

import re
from collections.abc import Collection
from hashlib import blake2b

from xdscore.client_kinds import ClientFamily
from xdscore.nacktext.normalise import ALGORITHM as TEXT_ALGORITHM
from xdscore.nacktext.normalise import normalise

ALGORITHM = f"v{TEXT_ALGORITHM}"
PROVEN_ALGORITHM = "r1"
FINGERPRINT_CHARS = 32

# Stands for the resource where nobody is named. No resource is called so: its name and this differ in the separator
# below.
NOBODY = "?"


# What separates the part about one resource from the next, in the texts of Envoy, gRPC C-core and Go (clients.md 4).
_SEPARATORS = re.compile(r"(?:[\s,;\]]|resource index \d+:|resource \")+$")


def part_about(text: str, name: str, others: Collection[str]) -> str:
    """The part of a NACK's text that is about one of several resources it names (texts.md 9.3): one fault is one
    incident, whichever others were refused with it. The whole text where the name does not stand in it.
    """
    start = text.find(f"{name}: ")
    if start < 0:
        return text
    said_from = start + len(name)
    ends = (text.find(f"{other}: ", said_from) for other in others if other != name)
    end = min((each for each in ends if each >= 0), default=len(text))
    return _SEPARATORS.sub("", text[start:end])


def normalised_text(text: str) -> str:
    """The text without what differs between two reports of one fault: blanks, numbers, addresses, debug marks."""
    return normalise(text)


def fingerprint(*, word: str, name: str, family: ClientFamily, normalised: str) -> str:
    """The fingerprint of a NACK that blames `name`, or nobody (empty), in 32 hexadecimal digits."""
    resource = f"={name}" if name else NOBODY
    parts = f"{ALGORITHM}\0{word}\0{resource}\0{family.value}\0{normalised}"
    return blake2b(parts.encode(), digest_size=FINGERPRINT_CHARS // 2).hexdigest()


def proven_fingerprint(*, word: str, name: str, revision: int) -> str:
    """The fingerprint of the refusals of one revision that is proven to be the cause, whatever their words."""
    parts = f"{PROVEN_ALGORITHM}\0{word}\0{name}\0{revision}"
    return blake2b(parts.encode(), digest_size=FINGERPRINT_CHARS // 2).hexdigest()
