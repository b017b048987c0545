"""The id of the request being answered: in every log line, every audit event and every answer."""

import re
import uuid
from contextvars import ContextVar
from typing import Final

HEADER: Final = "X-Request-ID"

# What a caller may choose: enough for UUIDs, trace ids and build numbers, and nothing a log reader would act on (threat
# 16). 64 is the audit log's column.
_SANE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

_current: ContextVar[str] = ContextVar("request_id", default="")


def request_id() -> str:
    """The id of the request that is being answered; empty where none is."""
    return _current.get()


def chosen_id(given: str) -> str:
    """The request id that the caller gave, if it is short and harmless in a log; else a new one."""
    return given if _SANE.fullmatch(given) else uuid.uuid4().hex


def request_id_set(value: str) -> None:
    """Set the id of the request that is being answered in this context (thread or task)."""
    _current.set(value)
