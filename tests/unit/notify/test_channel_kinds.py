"""A row of the kinds of channels is complete, or a sentence says which file lacks what."""

from pathlib import Path

import pytest

from controlplane.notify.channel_kinds import FACTS, ChannelKind
from controlplane.notify.models import Channel
from controlplane.notify.services.sending import SENDERS

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "notifications.md"


@pytest.mark.parametrize("kind", ChannelKind)
def test_kind__of_the_api__has_a_row_and_a_sender(kind: ChannelKind) -> None:
    where = "controlplane/notify/services/sending.py"

    assert kind in FACTS, f"Write a row for '{kind}' in controlplane/notify/channel_kinds.py."
    assert kind in SENDERS, f"Write what sends to a channel of the kind '{kind}' and add it to SENDERS in {where}."


@pytest.mark.parametrize("kind", ChannelKind)
def test_kind__of_the_table__fits_its_column(kind: ChannelKind) -> None:
    room = Channel._meta.get_field("kind").max_length or 0

    assert len(kind) <= room, f"Find a word of at most {room} characters for '{kind}'."


@pytest.mark.parametrize("kind", ChannelKind)
def test_kind__of_the_table__is_documented(kind: ChannelKind) -> None:
    assert f'"{kind}"' in REFERENCE.read_text(encoding="utf-8"), f"Say what '{kind}' is in {REFERENCE.name}, Channels."
