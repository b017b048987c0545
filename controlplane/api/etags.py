"""Strong entity tags from revision numbers: `"r17"` (texts.md section 4; RFC 9110 sections 8.8.3 and 13.1)."""

import re
from typing import Final

from rest_framework.request import Request

from controlplane.api.errors import ConditionMissing
from controlplane.catalog.selectors import EnvironmentState
from controlplane.catalog.values import Existing, Expectation
from controlplane.common.errors import InputInvalid

_TAG: Final = re.compile(r'"r(\d{1,10})"')
_LIST: Final = re.compile(r'\s*(?:W/)?"[\x21\x23-\x7e]*"\s*(?:,\s*(?:W/)?"[\x21\x23-\x7e]*"\s*)*')


def etag(revision: int) -> str:
    """The ETag of a resource's revision, in quotes."""
    return f'"r{revision}"'


def expectation_of(request: Request, environment: EnvironmentState) -> Expectation:
    """The condition of a write, from the headers If-Match and If-None-Match. Raises InputInvalid for a header that
    cannot be read, and ConditionMissing where there is none and the environment demands one (decisions C25).
    """
    match = request.headers.get("If-Match")
    none_match = request.headers.get("If-None-Match")
    if match is not None and none_match is not None:
        raise InputInvalid("Send If-Match or If-None-Match, not both. Nothing was changed.")
    if none_match is not None:
        if none_match.strip() != "*":
            raise InputInvalid(
                "A write understands 'If-None-Match: *' (only if it does not exist yet). Nothing was changed."
            )
        return Existing.ABSENT
    if match is None:
        if environment.policy.require_if_match:
            raise ConditionMissing(
                f"Environment '{environment.key}' wants to know which revision this was made from. Send If-Match with "
                "the ETag you read, or 'If-None-Match: *' for what does not exist yet. Nothing was changed."
            )
        return Existing.ANY
    if match.strip() == "*":
        return Existing.PRESENT
    if not _LIST.fullmatch(match):
        raise InputInvalid('If-Match must be * or entity tags such as "r17", with their quotes. Nothing was changed.')
    return frozenset(int(number) for number in _strong(match))


def is_current(request: Request, revision: int) -> bool:
    """Whether the caller of a read has this revision already, by the header If-None-Match; a `W/` in front is
    ignored.
    """
    given = request.headers.get("If-None-Match", "")
    return given.strip() == "*" or etag(revision) in (each.strip().removeprefix("W/") for each in given.split(","))


def _strong(tags: str) -> list[str]:
    """The revision numbers in a list of ETags; weak ones are left out, because they never match (RFC 9110 section
    13.1.1).
    """
    parts = (each.strip() for each in tags.split(","))
    return [match[1] for part in parts if (match := _TAG.fullmatch(part))]
