"""What goes on without the types that fail, and what is kept of them (reliability F29)."""

from controlplane.builder.stages.fallback import Cause, HeldBack, resolve
from controlplane.builder.stages.isolation import REASON, Isolation, failing_types
from controlplane.catalog.heads import Head
from xdscore.snapshot import Content, Entry, EntryKey, RemovedName, Served, WithheldName

OLD, NEW = Content(b"\1" * 16, "old", 10), Content(b"\2" * 16, "new", 10)
UNKNOWN: EntryKey = ("of-tomorrow", "x")
LISTENER: EntryKey = ("listener", "l")


def heads(*given: Head) -> dict[EntryKey, Head]:
    return {head.key: head for head in given}


def kept(before: Entry | None, head: Head) -> tuple[Entry, tuple[HeldBack, ...]]:
    published = {} if before is None else {head.key: before}
    isolation = Isolation({"route": "KeyError"}, heads(head), published)
    resolution = isolation.keep(resolve(isolation.heads))
    return resolution.entries[head.key], resolution.held


def route(content: Content | None) -> Head:
    return Head(("route", "r"), content, references=(UNKNOWN,), revision=3)


def held(*, served: bool) -> tuple[HeldBack, ...]:
    return (HeldBack(("route", "r"), Cause.TYPE, REASON, served),)


def test_failing_types__one_of_two__is_named_with_its_error() -> None:
    found = failing_types(heads(route(NEW), Head(LISTENER, NEW)))

    assert found == {"route": "KeyError"}


def test_failing_types__all_that_there_are__nothing_is_left_to_go_on_with() -> None:
    assert failing_types(heads(route(NEW))) == {}


def test_failing_types__none__is_empty() -> None:
    assert failing_types(heads(Head(LISTENER, NEW, references=(("route", "nowhere"),)))) == {}


def test_keep__content_that_changed__stays_the_old_and_is_held() -> None:
    assert kept(Served(OLD, OLD, (7,)), route(NEW)) == (Served(OLD, OLD), held(served=True))


def test_keep__content_that_did_not_change__is_not_held() -> None:
    assert kept(Served(NEW), route(NEW)) == (Served(NEW), ())


def test_keep__name_deleted_since__is_served_on_and_held() -> None:
    assert kept(Served(OLD), route(None)) == (Served(OLD), held(served=True))


def test_keep__name_that_was_never_published__is_withheld_and_never_missing() -> None:
    assert kept(None, route(NEW)) == (WithheldName(REASON), held(served=False))
    assert kept(RemovedName(), route(NEW)) == (WithheldName(REASON), held(served=False))


def test_keep__name_that_was_withheld__keeps_its_reason() -> None:
    assert kept(WithheldName("rejected by clients"), route(NEW)) == (
        WithheldName("rejected by clients"),
        held(served=False),
    )


def test_keep__name_that_is_gone__stays_gone() -> None:
    assert kept(RemovedName(), route(None)) == (RemovedName(), ())


def test_heads__another_type_needs_what_was_never_published__it_exists_and_holds_nobody() -> None:
    listener = Head(LISTENER, NEW, references=(("route", "r"),))
    isolation = Isolation({"route": "KeyError"}, heads(route(NEW), listener), {})

    resolution = isolation.keep(resolve(isolation.heads))

    assert resolution.entries[LISTENER] == Served(NEW)


def test_heads__another_type_needs_what_was_deleted_and_is_served_on__it_exists() -> None:
    listener = Head(LISTENER, NEW, references=(("route", "r"),))
    isolation = Isolation({"route": "KeyError"}, heads(route(None), listener), {("route", "r"): Served(OLD)})

    resolution = isolation.keep(resolve(isolation.heads))

    assert resolution.entries[LISTENER] == Served(NEW)


def test_keep__while_a_type_is_out__nothing_is_called_unused() -> None:
    cluster = Head(("cluster", "c"), NEW)
    isolation = Isolation({"route": "KeyError"}, heads(route(NEW), cluster), {})

    resolution = isolation.keep(resolve(isolation.heads))

    assert (resolution.references.unused, resolution.references.unused_count) == ((), 0)
