"""Principals who act in tests."""

import zlib

from controlplane.accounts.principal import Principal, Scope
from controlplane.common.principal_ids import PrincipalId, PrincipalKind


def somebody(name: str, scopes: tuple[Scope, ...]) -> Principal:
    """A principal without a row in the database, told apart from others by a number: what they make is nobody's."""
    return Principal(name, scopes, PrincipalId(PrincipalKind.SYSTEM, zlib.crc32(name.encode())))
