"""How every process logs: one event, one line (threat 16), as JSON for machines or as a readable line for people.

As JSON a line says what happened (`timestamp`, `level`, `logger`, `event`) and where (`origin`); what is printed
past this module has the same form (`capture`). Foreign text cannot break out of its field: control and direction
characters are escaped, a text is cut at 1 KiB and a list at 100. Fields named like a secret never show their value
(invariant S5).
"""

import logging
import logging.config
from collections.abc import Mapping
from itertools import islice
from typing import Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from controlplane.logs.capture import log_stream
from controlplane.logs.origin import origin
from controlplane.logs.text import FIELD_CHARS_MAX, TRACEBACK_CHARS_MAX, contained

_ITEMS_MAX: Final = 100
_HIDDEN: Final = "[hidden]"
_SECRET_WORDS: Final = ("password", "secret", "token", "authorization", "cookie", "private_key", "credential")
# Of Django's records: its form shows the query string, which is nobody's business; the line of the request says more.
_REQUEST: Final = "request"


def hide_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace the value of log fields that are named like a secret."""
    for key in event:
        if any(word in key.lower() for word in _SECRET_WORDS):
            event[key] = _HIDDEN
    return event


def contain_text(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Cut long texts in log fields and escape what would start a new line or move the cursor, however deep they
    stand.
    """
    for key, value in event.items():
        if key != "exception":
            event[key] = _inside(value)
    if isinstance(event.get("exception"), str):
        event["exception"] = event["exception"][-TRACEBACK_CHARS_MAX:]
    return event


def _inside(value: object) -> object:
    if isinstance(value, str):
        return contained(value, FIELD_CHARS_MAX)
    if isinstance(value, Mapping):
        return {_inside(key): _inside(each) for key, each in islice(value.items(), _ITEMS_MAX)}
    if isinstance(value, list | tuple):
        return [_inside(each) for each in value[:_ITEMS_MAX]]
    return value if value is None or isinstance(value, int | float) else contained(repr(value), FIELD_CHARS_MAX)


def _add_origin(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Add the fields that name this process, in place of any that a library calls the same."""
    event.pop(_REQUEST, None)
    event.update(origin())
    return event


def logging_config(*, as_json: bool) -> dict[str, object]:
    """Django's setting LOGGING. Records of every library pass through the same processors as our own events."""
    renderers: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if as_json:
        renderers += [
            structlog.contextvars.merge_contextvars,  # of records of libraries, too
            structlog.processors.format_exc_info,
            _add_origin,
            contain_text,
            structlog.processors.JSONRenderer(),
        ]
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
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "event", "stream": log_stream()}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            "uvicorn": quiet,
            "uvicorn.error": quiet,
            "uvicorn.access": {**quiet, "level": "WARNING"},  # `api.request_log` says more, and no query string
            "django": quiet,
            "django.server": quiet,
            "django.request": {"level": "ERROR"},  # each answer 4xx once more, as a sentence
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
