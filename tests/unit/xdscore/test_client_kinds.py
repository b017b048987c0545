"""Kinds of clients, read from what they call themselves."""

import pytest

from xdscore.client_kinds import ClientFamily, ClientKind, kind_of


@pytest.mark.parametrize(
    ("user_agent", "version", "kind"),
    [
        ("envoy", "1.40.0", "envoy 1.40"),
        ("gRPC C-core linux Python", "C-core 1.85.1", "grpc-core 1.85"),
        ("gRPC Go", "1.85.0-dev", "grpc-go 1.85"),
        ("gRPC Java", "1.78.0", "grpc-java 1.78"),
        ("gRPC Node Pure JS", "1.14.1", "grpc-node 1.14"),
        ("tonic-xds", "0.1.0-alpha.1", "grpc-rust 0.1"),
        ("envoy", "", "envoy ?"),
        ("envoy", "1", "envoy ?"),
        ("envoy", "٣.4", "envoy ?"),
        ("envoy", "99999999.1", "envoy ?"),
        ("envoy", "01.002", "envoy 1.2"),
    ],
)
def test_kind_of__what_a_client_calls_itself__is_family_and_major_minor(
    user_agent: str, version: str, kind: str
) -> None:
    assert str(kind_of(user_agent, version)) == kind


def test_kind_of__unknown_family__is_one_kind_whatever_its_version() -> None:
    assert kind_of("mine", "1.2") == kind_of("", "") == ClientKind(ClientFamily.OTHER)
