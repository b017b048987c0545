"""Whether two principals are, as far as ids tell it, one person: a token acts for its owner, and who made a token can
use it.
"""

from typing import Final

from controlplane.accounts.models import ApiToken
from controlplane.common.principal_ids import PrincipalId, PrincipalKind

_TOKEN: Final = f"{PrincipalKind.TOKEN.value}:"
_USER: Final = f"{PrincipalKind.USER.value}:"
# A token is made by a token, and that by another one; nobody needs more.
_MAX_MADE: Final = 20


def in_one_hand(one: str, other: str) -> bool:
    """Whether one person may be behind both principals, given by their ids as text: they are the same, or belong to the
    same person, or one of them made the other, or made what made it. Two tokens that a third person made are not in one
    hand. An empty id is nobody's.
    """
    if not one or not other:
        return False
    first, second = _persons(one), _persons(other)
    return not (first.isdisjoint(second | _makers(other)) and second.isdisjoint(_makers(one)))


def _persons(principal: str) -> set[str]:
    """The principal, and the person to whom it belongs."""
    token = _token(principal)
    owner = str(PrincipalId(PrincipalKind.USER, token.owner_id)) if token is not None and token.owner_id else principal
    return {principal, owner}


def _makers(principal: str) -> set[str]:
    """Who made the token, and what made that, with the persons to whom they belong."""
    found: set[str] = set()
    token = _token(principal)
    for _ in range(_MAX_MADE):
        if token is None or not token.creator.startswith((_TOKEN, _USER)) or token.creator in found:
            break
        found |= _persons(token.creator)
        token = _token(token.creator)
    return found


def _token(principal: str) -> ApiToken | None:
    number = principal.removeprefix(_TOKEN)
    if number == principal or not number.isdecimal():
        return None
    return ApiToken.objects.filter(pk=int(number)).first()
