"""The part of a form that limits a role to some resources: by owner, types and names."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict

from controlplane.common.errors import InputInvalid
from controlplane.common.limits import MAX_LIMIT_CHARS, MAX_LIMIT_NAMES, MAX_OWNER_CHARS, Limit, limit_of
from xdscore.resource_types import RESOURCE_TYPES


@dataclass(frozen=True, slots=True)
class LimitWords:
    """The fields of a limit as they are shown, with what was typed before. `types`: each with whether it is chosen."""

    owner: str
    types: Sequence[tuple[str, bool]]
    names: str
    max_owner: int = MAX_OWNER_CHARS
    max_names: int = MAX_LIMIT_NAMES
    max_chars: int = MAX_LIMIT_CHARS

    @property
    def given(self) -> bool:
        """Whether anything was chosen or typed, so that the fields are shown open."""
        return bool(self.owner or self.names or any(chosen for _, chosen in self.types))


def limit_words(given: QueryDict) -> LimitWords:
    """The fields of a limit; `given`: the form as it was sent, empty before that."""
    chosen = set(given.getlist("limit_types"))
    types = [(kind.word, kind.word in chosen) for kind in RESOURCE_TYPES]
    return LimitWords(given.get("limit_owner", ""), types, given.get("limit_names", ""))


def limit_of_form(given: QueryDict) -> Limit | None:
    """The limit that a form has; None where it has none: an empty field says nothing. Raises InputInvalid."""
    names = [line.strip() for line in given.get("limit_names", "").splitlines() if line.strip()]
    try:
        return limit_of(
            owner=given.get("limit_owner", "").strip() or None,
            types=given.getlist("limit_types") or None,
            names=names or None,
        )
    except ValueError as error:
        raise InputInvalid(f"{error} Nothing was changed.") from None
