"""Dangerous content: every spelling of loopback, every field that names a file (reliability threat 20)."""

import pytest

from xdscore.schema.content_policy import DEFAULT_POLICY, OPEN_POLICY, policy_of, stances_of
from xdscore.schema.dangers import FILE_FIELDS, NO_DESTINATIONS, is_loopback
from xdscore.schema.types_registry import descriptors

LOOPBACK = (
    "127.0.0.1 127.9.9.9 127.1 0x7f000001 2130706433 0.0.0.0 ::1 :: ::ffff:127.0.0.1 ::1%lo "
    "localhost LOCALHOST. a.localhost"
)


@pytest.mark.parametrize("host", LOOPBACK.split())
def test_is_loopback__each_spelling__is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["192.0.2.1", "::2", "localhost.example", "127.example", "", "a b", "x" * 300])
def test_is_loopback__anything_else__is_not(host: str) -> None:
    assert not is_loopback(host)


def test_tables__every_field__exists_in_the_api() -> None:
    fields = {field.full_name for descriptor in descriptors().values() for field in descriptor.fields}

    assert (FILE_FIELDS | NO_DESTINATIONS) - fields == set()


def test_policy__what_is_stored__reads_back() -> None:
    assert policy_of({}) == DEFAULT_POLICY
    assert policy_of(stances_of(OPEN_POLICY)) == OPEN_POLICY
