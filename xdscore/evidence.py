"""What a server knows about a NACK besides its text: on which ground the suspects of a `Rejected` fact stand.

Said by the engine, kept with the NACK, read by attribution. In the order of texts.md 9.4, surest first.
"""

from enum import StrEnum


class Evidence(StrEnum):
    """How the suspects of a NACK were found: isolated by sending them apart, as the only change, or by the client's
    text.
    """

    ISOLATED = "isolated"  # the server sent the suspects of an earlier NACK apart, and this one was refused alone
    ONLY_CHANGE = "only_change"  # nothing else of the response was new to the client
    TEXT = "text"  # several were new: those that the text names, or all of them when it names none
