"""A storm of refusals is a handful of lines that name what is refused, not a line for each client (reliability F19)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog
from structlog.typing import EventDict

from adsserver.engine.events import Nack, NamedContent, Rejected, Variant
from adsserver.ports import StreamInfo
from adsserver.servicers.refusal_log import RefusalLog
from xdscore.resource_types import CLUSTER
from xdscore.snapshot import Content

STREAM = StreamInfo("s0", "prod", "", "node-0", "", "envoy", "1.40", Variant.SOTW, "peer")


def refused(*versions: str, text: str = "bad", code: int = 13) -> Rejected:
    """A refusal of clusters c0, c1, … in these versions."""
    contents = tuple(
        NamedContent(f"c{number}", Content(version.encode(), version, 1)) for number, version in enumerate(versions)
    )
    return Rejected(CLUSTER, "7", "v", Nack(code, text), contents, contents)


def logged(say: Callable[[RefusalLog], None]) -> list[EventDict]:
    """What is logged by `say` on an event loop."""

    async def run() -> None:
        say(RefusalLog())

    with structlog.testing.capture_logs() as events:
        asyncio.run(run())
    return events


def test_refusals__of_one_content_by_many__are_one_line_at_once_and_one_with_their_number() -> None:
    def say(log: RefusalLog) -> None:
        for number in range(500):
            log.refused(replace(STREAM, id=f"s{number % 100}"), refused("1", text=f"words {number}", code=number))
        log.tell()
        log.tell()

    first, rest = logged(say)

    assert (first["event"], first["names"], first["type"]) == ("stream.nacked", "c0", "cluster")
    assert (first["node_id"], first["environment"], first["code"]) == ("node-0", "prod", 0)
    assert (rest["event"], rest["names"], rest["times"], rest["streams"]) == ("stream.nacked_again", "c0", 499, 100)


def test_refusals__of_other_content_type_or_environment__have_lines_of_their_own() -> None:
    def say(log: RefusalLog) -> None:
        for fact in (refused("1"), refused("2"), refused("1", "1"), refused("1", "1", "1", "1", "1")):
            log.refused(STREAM, fact)
        log.refused(replace(STREAM, environment="test"), refused("1"))

    lines = logged(say)

    assert [line["names"] for line in lines] == ["c0", "c0", "c0, c1", "c0, c1, c2", "c0"]
    assert {line["event"] for line in lines} == {"stream.nacked"}


def test_refusals__told__begin_anew() -> None:
    def say(log: RefusalLog) -> None:
        log.refused(STREAM, refused("1"))
        log.tell()
        log.refused(STREAM, refused("1"))

    assert [line["event"] for line in logged(say)] == ["stream.nacked", "stream.nacked"]


def test_refusals__of_more_contents_than_are_told_apart__are_counted() -> None:
    def say(log: RefusalLog) -> None:
        for number in range(300):
            log.refused(replace(STREAM, identity=f"spiffe://td/{number}"), refused(f"{number}"))
        log.tell()

    lines = logged(say)

    assert len(lines) == 257
    assert (lines[-1]["event"], lines[-1]["times"]) == ("stream.nacked_more", 300 - 256)


def test_refusals__one_caller_refuses_ever_new_contents__those_of_others_still_have_their_lines() -> None:
    def say(log: RefusalLog) -> None:
        for number in range(300):
            # Another node id each time, as whoever wants to hide what others refuse would.
            loud = replace(STREAM, node_id=f"n{number}", peer=f"ipv4:192.0.2.1:{number}")
            log.refused(loud, refused(f"v{number}"))
        log.refused(replace(STREAM, node_id="quiet", peer="ipv4:192.0.2.2:1"), refused("1", "1"))
        log.tell()

    *_, last, more = logged(say)

    assert (last["event"], last["node_id"], last["names"]) == ("stream.nacked", "quiet", "c0, c1")
    assert more["event"] == "stream.nacked_more"
