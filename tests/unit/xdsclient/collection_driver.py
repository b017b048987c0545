"""What tests of collections share: a directory with members, a client that watches it, and what its watches heard."""

import pytest

from tests.unit.xdsclient.driver import FAIL, Driver
from xdsclient.engine.events import Variant
from xdsclient.engine.values import ServerFeature, StatusCode
from xdscore.resource_types import CLUSTER, ENDPOINT, ResourceType

BOTH = pytest.mark.parametrize("variant", list(Variant))
SOME_TYPES = pytest.mark.parametrize("kind", [CLUSTER, ENDPOINT], ids=["CDS", "EDS"])
FEATURES = pytest.mark.parametrize("features", [(), (FAIL,)], ids=["plain", "fails"])

DIRECTORY = "xdstp://a/t/d/"
GLOB = DIRECTORY + "*"
X, Y = DIRECTORY + "x", DIRECTORY + "y"
NOT_FOUND, DENIED, INTERNAL = StatusCode.NOT_FOUND, StatusCode.PERMISSION_DENIED, StatusCode.INTERNAL


def opened(kind: ResourceType, *names: str, variant: Variant, features: tuple[ServerFeature, ...] = ()) -> Driver:
    """A client on an open stream that watches these names, in this order: watches 1, 2…"""
    driver = Driver(*features, variant=variant)
    for name in names:
        driver.watch(kind, name)
    driver.open()
    return driver


def heard(driver: Driver, watch: int = 1) -> list[str]:
    """What a watch of a collection heard since this was asked last: `x v1`, `x !NOT_FOUND`, `-x`; `*` is the whole."""
    found, driver.heard[watch] = driver.heard[watch], []
    return [each.replace(DIRECTORY, "") for each in found]
