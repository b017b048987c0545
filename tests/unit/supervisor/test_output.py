"""Lines of processes on the screen and in files."""

import asyncio
import io
import json
import threading
from pathlib import Path

from controlplane.ops.supervisor.output import FILE_BYTES_MAX, LogFile, Screen, pump
from tests.support.waiting import eventually


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Stalled(io.StringIO):
    """A terminal that nobody reads until `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def write(self, text: str) -> int:
        self.go.wait(10)
        return super().write(text)


async def pumped(said: bytes, screen: Screen, file: LogFile) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(said)
    reader.feed_eof()
    await pump(reader, lambda text: screen.line("web", text), file.write)


async def test_pump__lines_and_a_rest__each_with_its_prefix_and_in_the_file(tmp_path: Path) -> None:
    stream = io.StringIO()
    screen = Screen(stream, ("web", "worker"), {})
    file = LogFile(tmp_path / "web.log")

    await pumped(b"one\ntwo \xff\nrest", screen, file)
    screen.close()
    file.close()

    assert stream.getvalue() == "web    | one\nweb    | two �\nweb    | rest\n"
    assert (tmp_path / "web.log").read_text() == "one\ntwo �\nrest\n"


async def test_pump__a_line_without_an_end__is_cut_and_does_not_grow(tmp_path: Path) -> None:
    stream = io.StringIO()
    screen = Screen(stream, ("web",), {})

    await pumped(b"x" * 300_000, screen, LogFile(tmp_path / "web.log"))
    screen.close()

    lines = stream.getvalue().splitlines()
    assert sum(line.count("x") for line in lines) == 300_000
    assert max(map(len, lines)) < 200_000


def test_screen__on_a_terminal__is_coloured_unless_no_color_is_set() -> None:
    coloured, plain = Terminal(), Terminal()
    for stream, environment in ((coloured, {}), (plain, {"NO_COLOR": "1"})):
        screen = Screen(stream, ("web",), environment)
        screen.line("web", "hello")
        screen.close()

    assert "\x1b[" in coloured.getvalue()
    assert plain.getvalue() == "web | hello\n"


def test_screen__nobody_reads__drops_and_counts_and_never_waits() -> None:
    stream = Stalled()
    screen = Screen(stream, ("web",), {})

    for number in range(12_000):
        screen.line("web", str(number))
    stream.go.set()
    eventually(lambda: "web | 9000\n" in stream.getvalue(), within_s=10)
    screen.plain("after")
    screen.close()

    assert "lines were not shown" in stream.getvalue()
    assert stream.getvalue().endswith("after\n")


def test_log_file__grows_over_its_limit__is_rotated_and_three_are_kept(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "web.log")
    line = "x" * (FILE_BYTES_MAX // 2)

    for _ in range(12):
        file.write(line)
    file.close()

    assert sorted(each.name for each in tmp_path.iterdir()) == ["web.log", "web.log.1", "web.log.2", "web.log.3"]


def test_log_file__cannot_be_written__costs_the_line_only(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "missing" / "web.log")

    file.write("lost")
    (tmp_path / "missing").mkdir()
    file.write("kept")
    file.close()

    assert (tmp_path / "missing" / "web.log").read_text() == "kept\n"


async def test_screen__of_json__each_line_is_an_event_and_those_of_a_process_stay_as_they_are(tmp_path: Path) -> None:
    stream = io.StringIO()
    screen = Screen(stream, ("web",), {}, as_json=True)
    event = {"timestamp": "2026-01-01T00:00:00Z", "role": "web", "event": "x", "process": 8}

    await pumped(json.dumps(event).encode() + b"\nplain\n", screen, LogFile(tmp_path / "web.log"))
    screen.plain("\nParley has\nstopped.")
    screen.close()

    of_web, plain, own = map(json.loads, stream.getvalue().splitlines())
    assert of_web == event
    assert (plain["event"], plain["program"]) == ("plain", "web")
    assert own["event"] == "Parley has\\nstopped."
    assert all(line["role"] and line["version"] and line["process"] for line in (plain, own))
