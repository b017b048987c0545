"""One event is one line, whatever strangers put in it, and secrets are not in it (threat 16, invariant S5)."""

import io
import json
import logging
import logging.config
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from controlplane.logs.setup import logging_config
from controlplane.logs.text import contained


def formatted(*, as_json: bool, event: str, **fields: object) -> str:
    """What a process would print for this event."""
    config = logging_config(as_json=as_json)
    assert isinstance(config["formatters"], dict)
    settings = config["formatters"]["event"]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=settings["foreign_pre_chain"], processors=settings["processors"]
    )
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger = logging.getLogger("tests.logs")
    logger.propagate = False
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    structlog.wrap_logger(
        logger,
        processors=[*settings["foreign_pre_chain"][1:], structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
    ).info(event, **fields)
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _quiet_again() -> Iterator[None]:
    yield
    logging.getLogger("tests.logs").handlers = []


@given(st.text(max_size=200), st.text(max_size=200))
def test_json__any_text_in_a_field__is_one_line_that_parses(name: str, value: str) -> None:
    line = formatted(as_json=True, event="stream.nacked", text=value, client=name)

    assert line.count("\n") == 1
    assert line.isascii()
    assert json.loads(line)["event"] == "stream.nacked"


def test_json__text_in_a_list_or_below_a_key__is_escaped_there_too() -> None:
    acting = "a\N{RIGHT-TO-LEFT OVERRIDE}b\x1b[2J"
    line = formatted(as_json=True, event="x", names=[acting, 7], places=({acting: acting},))

    said = json.loads(line)
    assert said["names"] == ["a\\u202eb\\x1b[2J", 7]
    assert said["places"] == [{"a\\u202eb\\x1b[2J": "a\\u202eb\\x1b[2J"}]


@given(st.text(max_size=200))
def test_readable__any_text_in_a_field__is_one_printable_line(value: str) -> None:
    line = formatted(as_json=False, event="stream.nacked", text=value, names=[value])

    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in line


@pytest.mark.parametrize("name", ["password", "admin_token", "Authorization", "client_secret", "set_cookie"])
def test_log__a_field_named_like_a_secret__is_hidden(name: str) -> None:
    line = formatted(as_json=True, event="x", **{name: "hunter2"})

    assert "hunter2" not in line
    assert json.loads(line)[name] == "[hidden]"


def test_log__a_record_of_a_library__passes_the_same_way() -> None:
    formatted(as_json=True, event="x")
    stream = io.StringIO()
    handler = logging.getLogger("tests.logs").handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)

    logging.getLogger("tests.logs").warning("two\nlines %s", "and\x1b[31m more")

    said = json.loads(stream.getvalue())
    assert said["event"] == r"two\nlines and\x1b[31m more"
    assert said["level"] == "warning"


def test_contained__longer_than_allowed__is_cut_with_a_mark() -> None:
    assert contained("x" * 2_000, 1_024) == "x" * 1_023 + "…"
