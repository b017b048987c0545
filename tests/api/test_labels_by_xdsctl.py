"""Labels from a terminal, against the real API."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from tests.api.test_by_xdsctl import xdsctl_as
from tests.services.undo.hands import put
from tests.support.manifests import cluster
from tests.support.web_thread import serving_web
from tests.support.xdsctl import DONE, NOT_THERE, USAGE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def xdsctl(tmp_path: Path) -> Iterator[Xdsctl]:
    environment_default_ensure()
    put(cluster("pay"), cluster("shop"))
    with serving_web() as address:
        yield xdsctl_as(address, tmp_path, *ADMIN_SCOPES)


def labels(name: str) -> str:
    return Resource.objects.get(name=name).labels


def test_label__one_resource__is_set_found_shown_and_removed(xdsctl: Xdsctl) -> None:
    made = xdsctl("label", "cluster", "pay", "team=pay", "tier=1", "-m", "ticket 7")
    found = xdsctl("get", "cluster", "-l", "team=pay", "-o", "name").out
    wide = xdsctl("get", "cluster", "-o", "wide").out
    described = xdsctl("describe", "cluster", "pay").out
    removed = xdsctl("label", "cluster", "pay", "tier-")
    again = xdsctl("label", "cluster", "pay", "tier-")

    assert (made.status, made.out.split()[0]) == (DONE, "change")
    assert "Labels of 1 resource are set" in made.err
    assert found.split() == ["cluster/pay"]
    assert "team=pay,tier=1" in wide
    assert "Labels:     team=pay tier=1" in described
    assert (removed.status, labels("pay")) == (DONE, "\nteam=pay\n")
    assert (again.status, "Nothing was changed" in again.err) == (DONE, True)
    assert Change.objects.filter(message="ticket 7").count() == 1


def test_label__by_a_selector__labels_all_as_one_change(xdsctl: Xdsctl) -> None:
    before = Change.objects.count()

    made = xdsctl("label", "cluster", "-l", "!team", "team=pay")

    assert (made.status, "Labels of 2 resources are set" in made.err) == (DONE, True)
    assert [labels(name) for name in ("pay", "shop")] == ["\nteam=pay\n"] * 2
    assert Change.objects.count() == before + 1


def test_label__that_is_none__is_wrong_usage_and_asks_nobody(xdsctl: Xdsctl) -> None:
    for words in (["pay"], ["pay", "team"], ["pay", "-- =x"], ["pay", "a=1", "a-"], ["pay", "ä=1"]):
        answer = xdsctl("label", "cluster", *words)
        assert answer.status == USAGE, words
    assert xdsctl("label", "cluster", "nobody", "a=1").status == NOT_THERE
    assert labels("pay") == ""


def test_export__applied_again__keeps_labels_and_its_diff_says_nothing_differs(xdsctl: Xdsctl, tmp_path: Path) -> None:
    xdsctl("label", "cluster", "pay", "team=pay")
    file = tmp_path / "all.yaml"

    file.write_text(xdsctl("get", "-o", "yaml").out)

    assert "'@labels':\n    team: pay" in file.read_text()
    assert xdsctl("diff", "-f", str(file)).status == DONE
    assert xdsctl("validate", "--offline", "-f", str(file)).status == DONE
    xdsctl("label", "cluster", "pay", "team-")
    assert xdsctl("apply", "-f", str(file)).status == DONE
    assert labels("pay") == "\nteam=pay\n"
