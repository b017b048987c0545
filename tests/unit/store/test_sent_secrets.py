"""What must not stay in the text of a NACK, as far as the fact thread can tell; and what it keeps where it cannot."""

import pytest

from adsserver.engine.events import NamedContent
from adsserver.store.contents import ContentMemory
from adsserver.store.sent_secrets import MAX_READINGS, MAX_READINGS_OF_ONE, Hearing
from controlplane.catalog.sealing import key_ring
from controlplane.clients.foreign_text import WITHHELD
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


def refusing(contents: ContentMemory, text: str, *sent: Content) -> str:
    """What is kept of one text about a response."""
    resources = tuple(NamedContent("pay", content) for content in sent)
    return Hearing(contents, max_bytes=200).kept("client", text, CLUSTER, resources)


def test_kept__contents_at_hand__is_without_the_secrets_of_those_that_are_sealed(contents: ContentMemory) -> None:
    assert refusing(contents, f"bad '{KEY}'", PLAIN) == f"bad '{KEY}'"
    assert refusing(contents, f"bad '{KEY}'", PLAIN, SEALED) == f"bad '{REDACTED}'"


def test_kept__content_is_gone_or_sealed_by_nobody_known__is_withheld_whole(contents: ContentMemory) -> None:
    unread, gone = Content(b"3" * 16, "v3", 3), Content(b"4" * 16, "v4", 3)
    contents.add({}, {unread.blob: b"garbage"})

    assert refusing(contents, f"bad '{KEY}'", PLAIN, gone) == WITHHELD
    assert refusing(contents, f"bad '{KEY}'", unread) == WITHHELD


def test_kept__fleet_that_says_the_same__is_read_once(contents: ContentMemory) -> None:
    hearing, sent = Hearing(contents, max_bytes=100), (NamedContent("pay", SEALED),)

    same = {hearing.kept(f"client-{number}", f"bad '{KEY}'", SECRET, sent) for number in range(3 * MAX_READINGS)}

    assert same == {f"bad '{REDACTED}'"}


def test_kept__client_that_says_more_than_is_read__is_withheld_and_takes_nothing_from_others(
    contents: ContentMemory,
) -> None:
    hearing, sent = Hearing(contents, max_bytes=100), (NamedContent("pay", SEALED),)

    loud = [hearing.kept("loud", f"{number}: '{KEY}'", SECRET, sent) for number in range(MAX_READINGS)]

    assert loud.count(WITHHELD) == MAX_READINGS - MAX_READINGS_OF_ONE
    assert hearing.kept("other", f"{MAX_READINGS - 1}: '{KEY}'", SECRET, sent) == f"{MAX_READINGS - 1}: '{REDACTED}'"


def test_kept__more_clients_than_are_read__are_withheld_but_not_what_holds_no_secret(contents: ContentMemory) -> None:
    hearing, sent = Hearing(contents, max_bytes=100), (NamedContent("pay", SEALED),)

    texts = [hearing.kept(f"client-{number}", f"{number}: '{KEY}'", SECRET, sent) for number in range(MAX_READINGS + 1)]

    assert (texts[MAX_READINGS - 1], texts[-1]) == (f"{MAX_READINGS - 1}: '{REDACTED}'", WITHHELD)
    assert hearing.kept("client", "no", CLUSTER, (NamedContent("pay", PLAIN),)) == "no"
