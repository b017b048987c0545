"""Bootstraps as people write them: what Envoy runs is taken, what it refuses is refused.

Our own are always tried; other people's where they are there (`tests.support.bootstraps.corpus`).
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.bootstraps import OURS, Judged, corpus, files_in, judged


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
