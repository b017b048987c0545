"""The registry: everything xds-protos knows, and what an unknown name was probably meant to be."""

import pytest

from xdscore.resource_types import RESOURCE_TYPES
from xdscore.schema.types_registry import descriptor_of, descriptors, message_name, nearest, nearest_types


def test_registry__every_resource_type__is_known_with_its_name_field() -> None:
    for kind in RESOURCE_TYPES:
        descriptor = descriptor_of(kind.message)
        assert descriptor is not None
        assert kind.name_field in descriptor.fields_by_name


def test_registry__all_modules__are_loaded_in_a_stable_order() -> None:
    assert len(descriptors()) > 2400
    assert list(descriptors()) == sorted(descriptors())


@pytest.mark.parametrize(
    ("url", "first"),
    [
        ("type.googleapis.com/envoy.config.cluster.v3.Clutser", "envoy.config.cluster.v3.Cluster"),
        ("type.googleapis.com/envoy.api.v2.Listener", "envoy.config.listener.v3.Listener"),
        (
            "x/envoy.filters.network.http_connection_manager.v3.HttpConnectionManger",
            "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        ),
        ("x/envoy.extensions.filters.http.router.v2.Router", "envoy.extensions.filters.http.router.v3.Router"),
    ],
)
def test_nearest_types__a_slip__finds_the_type_meant(url: str, first: str) -> None:
    assert message_name(nearest_types(url)[0]) == first


@pytest.mark.parametrize("url", ["", "/", "x" * 100_000, "type.googleapis.com/zzqqzz"])
def test_nearest_types__nothing_like_it__is_empty(url: str) -> None:
    assert nearest_types(url) == ()


def test_nearest__long_words__are_not_compared() -> None:
    assert nearest("a" * 151, ["a" * 151]) == []
