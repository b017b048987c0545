"""What must not stay in the text of a NACK, as far as the fact thread can tell; and what it keeps where it cannot."""

import pytest

from adsserver.engine.events import NamedContent
from adsserver.store.contents import ContentMemory
from adsserver.store.reading_time import ReadingTime
from adsserver.store.sent_secrets import Hearing
from controlplane.catalog.sealing import key_ring
from controlplane.clients.foreign_text import NOT_SHOWN
from tests.support.manifests import cluster, parsed, tls_secret
from xdscore.redaction import REDACTED
from xdscore.resource_types import CLUSTER, SECRET
from xdscore.snapshot import Content

PLAIN, SEALED = Content(b"1" * 16, "v1", 3), Content(b"2" * 16, "v2", 3)
KEY = "a key 7f3a91"


@pytest.fixture
def contents() -> ContentMemory:
    memory = ContentMemory()
    sealed = key_ring().seal(parsed(tls_secret("pay", KEY)).any_bytes, SEALED.blob)
    memory.add({PLAIN.blob: parsed(cluster("pay")).any_bytes}, {SEALED.blob: sealed})
    return memory


def hearing_of(contents: ContentMemory, *, max_bytes: int = 100, time: ReadingTime | None = None) -> Hearing:
    """By a clock that stands still: how long reading takes is `tests/unit/facts/test_reading_time.py`."""
    return Hearing(contents, max_bytes=max_bytes, time=time or ReadingTime(lambda: 0.0))


def refusing(contents: ContentMemory, text: str, *sent: Content) -> str:
    """What is kept of one text about a response."""
    resources = tuple(NamedContent("pay", content) for content in sent)
    return hearing_of(contents, max_bytes=200).kept("client", text, CLUSTER, resources)


def test_kept__contents_at_hand__is_without_the_secrets_of_those_that_are_sealed(contents: ContentMemory) -> None:
    assert refusing(contents, f"bad '{KEY}'", PLAIN) == f"bad '{KEY}'"
    assert refusing(contents, f"bad '{KEY}'", PLAIN, SEALED) == f"bad '{REDACTED}'"


def test_kept__content_is_gone_or_sealed_by_nobody_known__is_withheld_whole(contents: ContentMemory) -> None:
    unread, gone = Content(b"3" * 16, "v3", 3), Content(b"4" * 16, "v4", 3)
    contents.add({}, {unread.blob: b"garbage"})

    assert refusing(contents, f"bad '{KEY}'", PLAIN, gone) == NOT_SHOWN
    assert refusing(contents, f"bad '{KEY}'", unread) == NOT_SHOWN


def test_kept__fleet_that_says_the_same__is_read_once(contents: ContentMemory) -> None:
    opened: list[Content] = []

    class Counted(ContentMemory):
        def any_bytes(self, content: Content) -> bytes:
            opened.append(content)
            return contents.any_bytes(content)

        sealed = contents.sealed
        missing = contents.missing

    hearing, sent = hearing_of(Counted()), (NamedContent("pay", SEALED),)

    same = {hearing.kept(f"client-{number}", f"bad '{KEY}'", SECRET, sent) for number in range(700)}

    assert same == {f"bad '{REDACTED}'"}
    assert opened == [SEALED]


def test_kept__no_time_is_left__is_withheld_but_not_what_holds_no_secret_or_says_nothing(
    contents: ContentMemory,
) -> None:
    moments = iter((0.0, 10.0))
    time = ReadingTime(lambda: next(moments, 10.0))
    hearing, sent = hearing_of(contents, time=time), (NamedContent("pay", SEALED),)
    time.spend("client", 0.0)

    assert hearing.kept("client", f"bad '{KEY}'", SECRET, sent) == NOT_SHOWN
    assert hearing.kept("client", "", SECRET, sent) == ""
    assert hearing.kept("client", "no", CLUSTER, (NamedContent("pay", PLAIN),)) == "no"
