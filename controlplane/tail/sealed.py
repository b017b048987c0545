"""How watchers and ADS processes write to each other over the broker: sealed, so that a broker that is read by others
tells nothing, and one that is written by others is not believed (law 4, threat 18).

What one watcher is sent opens on its own channel only. A batch that is sent once more is known by its number.
"""

import json
from typing import Final

from controlplane.catalog.sealing import SealError, key_ring
from controlplane.tail.values import Batch, Interest

INTERESTS: Final = "parley:tail:interests"
"""The channel on which watchers announce what they want."""

CHANNELS: Final = "parley:tail:to:"
"""How the channel of a watcher begins; behind it stand the id of its principal, a colon and a random text."""

# A message that is longer was not written by us, and is not looked at: fifty events with the longest names and texts.
_MAX_BYTES: Final = 1024 * 1024


def interest_sealed(interest: Interest) -> bytes:
    """An interest as it is announced."""
    return key_ring().seal(json.dumps(interest.as_json()).encode(), INTERESTS.encode())


def interest_opened(data: bytes) -> Interest | None:
    """The interest that was announced; None for anything that no process of this installation wrote."""
    try:
        return Interest.of_json(json.loads(_opened(data, INTERESTS)))
    except (SealError, ValueError, KeyError, TypeError):
        return None


def batch_sealed(batch: Batch, channel: str) -> bytes:
    """A batch as it is sent to this channel."""
    content = [batch.process, batch.number, batch.environment, batch.events, batch.left_out]
    return key_ring().seal(json.dumps(content, ensure_ascii=False).encode(), channel.encode())


def batch_opened(data: bytes, channel: str) -> Batch | None:
    """The batch that was sent to this channel; None for anything that no process of this installation sent to it."""
    try:
        process, number, environment, events, left_out = json.loads(_opened(data, channel))
    except (SealError, ValueError, TypeError):
        return None
    return Batch(process, number, environment, tuple((kind, text) for kind, text in events), left_out)


def _opened(data: bytes, address: str) -> bytes:
    if len(data) > _MAX_BYTES:
        raise SealError("longer than any message")
    return key_ring().open(data, address.encode())
