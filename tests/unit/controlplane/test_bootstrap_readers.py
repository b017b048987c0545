"""The bootstraps that Parley makes, by the rules of parsers for which no package brings a client here."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controlplane.clients.bootstraps import Node, grpc_bootstrap
from controlplane.config.loading import load
from tests.support.bootstrap_readers import Tree, UnreadableBootstrapError, read_as_go, read_as_java
from tests.support.certificates import Authority, server_files
from xdscore.auth_modes import AuthMode
from xdscore.server_features import BootstrapFeature

READERS = [read_as_go, read_as_java]
Reader = Callable[[Tree], None]


def made(directory: Path, mode: AuthMode | None) -> Any:
    variables = {"PARLEY_ADS_ADDRESS": "127.0.0.1:18000"}
    if mode is not None:
        files = server_files(directory, Authority("ours"), "localhost")
        variables |= {
            "PARLEY_ADS_AUTH": mode.value,
            "PARLEY_ADS_TLS_CERT": str(files.certificate),
            "PARLEY_ADS_TLS_KEY": str(files.key),
            "PARLEY_ADS_TLS_CLIENT_CA": str(files.client_ca),
            "PARLEY_ADS_TRUST_DOMAINS": "td.example" if mode is AuthMode.MTLS else "",
        }
    node = Node("pay-1", "prod", {"zone": "eu"})
    return grpc_bootstrap(
        load(variables, directory=directory), node, features=BootstrapFeature, allowed_services=["dns:///a:443"]
    )


@pytest.mark.shows("gRPC for Go, by its rules", "starts with the bootstrap that Parley makes", "SotW")
@pytest.mark.shows("gRPC for Java, by its rules", "starts with the bootstrap that Parley makes", "SotW")
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("mode", [None, AuthMode.MTLS, AuthMode.TOKEN], ids=["plain", "mtls", "token"])
def test_bootstrap__of_every_mode__is_read(tmp_path: Path, mode: AuthMode | None, read: Reader) -> None:
    read(made(tmp_path, mode))


def without(*path: str | int) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        for part in path[:-1]:
            tree = tree[part]
        del tree[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (without("xds_servers"), "xds_servers"),
        (without("xds_servers", 0, "server_uri"), "server_uri"),
        (without("xds_servers", 0, "channel_creds"), "channel_creds"),
        (without("xds_servers", 0, "channel_creds", 0, "config", "private_key_file"), "private_key_file"),
        (without("certificate_providers", "default", "config", "certificate_file"), "(certificate|private_key)_file"),
        (lambda tree: tree["node"].update(locality=""), "locality"),
        (lambda tree: tree["node"].update(id=1), "id"),
        (lambda tree: tree["certificate_providers"]["default"]["config"].update(refresh_interval="10m"), "refresh"),
    ],
)
@pytest.mark.parametrize("read", READERS)
def test_readers__file_with_a_fault__name_it(
    tmp_path: Path, read: Reader, change: Callable[[Any], None], named: str
) -> None:
    """What the test above would see."""
    faulty = copy.deepcopy(made(tmp_path, AuthMode.MTLS))
    change(faulty)

    with pytest.raises(UnreadableBootstrapError, match=named):
        read(faulty)
