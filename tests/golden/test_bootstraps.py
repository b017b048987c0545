"""Bootstraps as people write them: what Envoy runs is taken, what it refuses is refused.

Our own are always tried; other people's where they are there (`tests.support.bootstraps.corpus`).
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.bootstraps import OURS, Judged, corpus, files_in, judged
from tests.support.envoy import envoy_with


def all_judged(folder: Path, directory: Path) -> list[Judged]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda file: judged(file, directory), files_in(folder)))


@pytest.mark.slow
def test_bootstraps__our_own__are_taken_and_refused_as_by_envoy(tmp_path: Path) -> None:
    found = all_judged(OURS, tmp_path)

    assert [str(each) for each in found if each.refused_by_us_alone] == []
    assert [str(each) for each in found if each.taken_by_us_alone] == []
    assert [each.file.name for each in found if each.envoy] == [
        each.file.name for each in found if each.file.name.startswith("refused-")
    ]
    assert len(found) >= 12


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    corpus() is None, reason="no corpus: PARLEY_CORPUS names none, and there is none beside the checkout"
)
def test_bootstraps__the_corpus__is_taken_and_refused_as_by_envoy(tmp_path: Path) -> None:
    folder = corpus()
    assert folder is not None

    found = all_judged(folder, tmp_path)

    assert [str(each) for each in found if each.refused_by_us_alone] == []
    assert [str(each) for each in found if each.taken_by_us_alone] == []
    assert found


@pytest.mark.slow
def test_listener__without_a_name__has_another_one_at_each_start_of_envoy_and_counts_by_its_address(
    tmp_path: Path,
) -> None:
    address = {"socket_address": {"address": "127.0.0.1", "port_value": 0}}
    echo = {"@type": "type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo"}
    nameless = {"address": address, "filter_chains": [{"filters": [{"name": "echo", "typed_config": echo}]}]}
    names = []
    for _ in range(2):
        with envoy_with(
            tmp_path, {"admin": {"address": address}, "static_resources": {"listeners": [nameless]}}
        ) as running:
            (listener,) = json.loads(running.get(running.admin, "/listeners?format=json"))["listener_statuses"]
            names.append(UUID(listener["name"]))
            assert "listener.127.0.0.1_0.downstream_cx_total" in running.get(running.admin, "/stats")

    assert names[0] != names[1]
