"""A text that a whole fleet says is read once; what it says of one response is never taken for what it says of another
(reliability F19, N2).
"""

from adsserver.engine import rejection
from adsserver.engine.events import Nack, NamedContent
from adsserver.engine.ledger import Entry
from adsserver.engine.rejection import named_by
from xdscore.resource_types import CLUSTER, LISTENER, SECRET, ResourceType
from xdscore.snapshot import Content

TEXT = "Error adding/updating cluster(s) pay: refused, ledger: refused"


def named(kind: ResourceType, text: str, *names: str) -> list[str]:
    """Whom this text blames in a response of these resources, all of them new."""
    resources = tuple(NamedContent(name, Content(name.encode(), name, 1)) for name in names)
    entry = Entry(version="v", resources=resources, changed=resources)
    return [member.name for member in named_by(kind, entry, resources, Nack(13, text))]


def test_text__said_again_of_other_responses__blames_what_was_in_each() -> None:
    for _ in range(2):
        assert named(CLUSTER, TEXT, "pay", "ledger", "web") == ["pay", "ledger"]
        assert named(CLUSTER, TEXT, "web", "ledger", "shop") == ["ledger"]
        assert named(CLUSTER, TEXT, "web", "shop") == []
        assert named(LISTENER, TEXT, "pay", "ledger", "web") == named(LISTENER, TEXT + " ", "pay", "ledger", "web")


def test_text__said_by_a_fleet__is_read_once() -> None:
    rejection._known_text.cache_clear()

    for _ in range(500):
        named(CLUSTER, TEXT, "pay", "ledger", "web")

    assert rejection._known_text.cache_info().misses == 1


def test_text__of_a_secret_or_without_bounds__is_not_kept() -> None:
    rejection._known_text.cache_clear()

    named(SECRET, TEXT, "pay", "ledger", "web")
    named(CLUSTER, TEXT + "!" * 5_000, "pay", "ledger", "web")

    assert rejection._known_text.cache_info().currsize == 0
