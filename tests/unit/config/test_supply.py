"""What is locked is not older than what has known holes, and what comes from the broker is read as JSON or not at all
(reliability threats 18 and 25).
"""

import pickle
import re
from pathlib import Path

import pytest
from django.conf import settings
from kombu.exceptions import ContentDisallowed
from kombu.serialization import loads, prepare_accept_content

ROOT = Path(__file__).parents[3]
# The first releases without the advisories that reliability.md names.
FLOORS = {
    "grpcio": (1, 83),
    "protobuf": (6, 33, 5),
    "django": (5, 2, 11),
    "djangorestframework": (3, 15, 2),
    "celery": (5, 2, 2),
}


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt"])
def test_lock__what_had_holes__is_at_or_above_its_floor(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    locked = {
        name: tuple(int(part) for part in version.split("."))
        for name, version in re.findall(r"^([a-z0-9-]+)==(\d+(?:\.\d+)*)", text, re.MULTILINE)
    }

    assert {name: locked.get(name) for name, floor in FLOORS.items() if locked.get(name, ()) < floor} == {}


@pytest.mark.parametrize(
    "content_type", ["application/x-python-serialize", "application/x-yaml", "application/x-msgpack", "text/x-else"]
)
def test_broker__task_that_is_not_json__is_refused_unread(content_type: str) -> None:
    trap = pickle.dumps(_Trap())

    with pytest.raises(ContentDisallowed):
        loads(
            trap,
            content_type=content_type,
            content_encoding="binary",
            accept=prepare_accept_content(settings.CELERY_ACCEPT_CONTENT),
        )

    assert not _Trap.sprung
    assert settings.CELERY_TASK_IGNORE_RESULT


class _Trap:
    """Whoever unpickles it runs it."""

    sprung = False

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return _spring, ()


def _spring() -> None:
    _Trap.sprung = True
