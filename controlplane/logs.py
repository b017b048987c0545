"""How every process logs: one event, one line (threat 16), as JSON for machines or as a readable line for people.

Foreign text cannot break out of its field: control and direction characters are escaped, and a field is cut at 1 KiB.
Fields named like a secret never show their value (invariant S5).
"""

import logging
import logging.config
import unicodedata
from collections.abc import Mapping
from typing import Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

_FIELD_CHARS_MAX: Final = 1_024  # reliability.md threat 16
_TRACEBACK_CHARS_MAX: Final = 16_384  # a traceback is ours, and useless when cut at its first frames
_HIDDEN: Final = "[hidden]"
_SECRET_WORDS: Final = ("password", "secret", "token", "authorization", "cookie", "private_key", "credential")
# Categories of characters that a terminal or a reader acts on: control, format (bidi, zero width), line separators.
_ACTING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def hide_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace the value of fields that are named like a secret."""
    for key in event:
        if any(word in key.lower() for word in _SECRET_WORDS):
            event[key] = _HIDDEN
    return event


def contain_text(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Cut long texts and escape what would start a new line or move the cursor, however deep they stand."""
    for key, value in event.items():
        if key != "exception":
            event[key] = _inside(value)
    if isinstance(event.get("exception"), str):
        event["exception"] = event["exception"][-_TRACEBACK_CHARS_MAX:]
    return event


def _inside(value: object) -> object:
    if isinstance(value, str):
        return contained(value, _FIELD_CHARS_MAX)
    if isinstance(value, Mapping):
        return {_inside(key): _inside(each) for key, each in value.items()}
    return [_inside(each) for each in value] if isinstance(value, list | tuple) else value


def contained(text: str, chars_max: int) -> str:
    """`text` in one line of at most `chars_max` characters before escaping, safe for a terminal."""
    shown = text if len(text) <= chars_max else text[: chars_max - 1] + "…"
    if shown.isascii() and shown.isprintable():
        return shown
    return "".join(_escaped(each) if unicodedata.category(each) in _ACTING else each for each in shown)


def logging_config(*, as_json: bool) -> dict[str, object]:
    """Django's LOGGING. Records of every library pass through the same processors as our own events."""
    renderers: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if as_json:
        renderers += [structlog.processors.format_exc_info, contain_text, structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.ConsoleRenderer(
            colors=False, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
        )
        renderers += [contain_text, plain]
    # Handlers that servers install for themselves give way to the one below.
    quiet: Mapping[str, object] = {"handlers": [], "propagate": True}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "event": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [structlog.stdlib.ExtraAdder(), *_shared()],
                "processors": renderers,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "event"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            "uvicorn": quiet,
            "uvicorn.error": quiet,
            "uvicorn.access": {**quiet, "level": "WARNING"},  # the proxy in front logs requests; errors are ours
            "django": quiet,
            "django.server": quiet,
            "celery.worker.strategy": {"level": "WARNING"},  # "task received" and "succeeded" for every build
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
        },
    }


def configure_events() -> None:
    """Hand structlog's events and Python's warnings to the logging module, where `logging_config` renders them."""
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            *_shared(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _shared() -> list[Processor]:
    return [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        hide_secrets,
    ]


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
