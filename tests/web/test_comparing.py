"""Two states beside each other, page by page, and how many clients may see a name."""

import html
import re

import pytest

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.catalog.guarding import Consent
from controlplane.catalog.models import Environment
from controlplane.database.aliases import READER
from controlplane.explain.reach import reach_of
from controlplane.snapshots.history import addresses_at, addresses_between
from tests.services.incidents.fleet import DANA, Fleet, publish
from tests.support.manifests import cluster
from tests.web.conftest import SignIn, page
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def epochs(environments: None) -> tuple[int, int]:
    """Two epochs: the second has changed one cluster of three, deleted one, and added one."""
    publish(cluster("stays"), cluster("changes"), cluster("goes"))
    before = Environment.objects.get(key="default").epoch
    publish(cluster("changes", connect_timeout="2s"), cluster("comes"), delete=("goes",))
    return before, Environment.objects.get(key="default").epoch


def test_addresses_between__two_epochs__hold_every_difference_and_little_else(epochs: tuple[int, int]) -> None:
    before, after = epochs
    whole = [addresses_at(environment_key="default", epoch=epoch) for epoch in epochs]

    parts = addresses_between(environment_key="default", before=before, after=after)

    def differing(old: object, new: object) -> set[object]:
        assert isinstance(old, dict)
        assert isinstance(new, dict)
        return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}

    assert differing(*parts) == differing(*whole) == {("cluster", name) for name in ("changes", "goes", "comes")}
    assert addresses_between(environment_key="default", before=after, after=after) == ({}, {})


@pytest.mark.parametrize("to", ["live", "the newer one"])
def test_compare__two_states__shows_what_leads_from_one_to_the_other(
    to: str, epochs: tuple[int, int], sign_in: SignIn
) -> None:
    before, after = epochs

    shown = page(sign_in(None, ""), f"/e/default/compare?from={before}&to={'live' if to == 'live' else after}")

    assert "<b>3</b> resources differ" in shown
    assert shown.index(">changes</b>") < shown.index(">comes</b>") < shown.index(">goes</b>")
    assert "stays" not in shown
    assert [f"</b> 1 {word}</a>" in shown for word in ("created", "deleted", "updated")] == [True] * 3
    assert 'class="diff"' not in shown  # until somebody unfolds one
    assert f">{before} · 2" in shown
    assert "dana: why</option>" in shown


def test_compare__more_than_a_page__has_pages(epochs: tuple[int, int], sign_in: SignIn) -> None:
    publish(*(cluster(f"more-{number:02}") for number in range(30)))
    browser = sign_in(None, "")

    asked = f"/e/default/compare?from={epochs[1]}&to=live&open=all"
    first, second = (page(browser, f"{asked}&page={n}") for n in (1, 2))
    folded = page(browser, asked.removesuffix("&open=all"))

    assert "30 differences" in folded
    assert "more-29" in folded
    assert second.count('class="diff"') == 5
    assert "1 to 25 of 30 differences" in first
    assert "more-29" not in first
    assert "26 to 30 of 30 differences" in second
    assert "more-29" in second


def test_compare__without_scripts__unfolds_one_or_all_filters_and_swaps(
    epochs: tuple[int, int], sign_in: SignIn
) -> None:
    before, after = epochs
    browser, asked = sign_in(None, ""), f"/e/default/compare?from={before}&to={after}"

    folded = page(browser, asked)
    links = {html.unescape(each) for each in re.findall(r'href="\?([^"#]+)', folded)}
    one = page(browser, f"/e/default/compare?{next(each for each in links if 'open=cluster%2Fchanges' in each)}")
    every = page(browser, f"/e/default/compare?{next(each for each in links if 'open=all' in each)}")
    created = page(browser, f"{asked}&state=created")
    named = page(browser, f"{asked}&type=cluster&name=GO")
    part = page(browser, f"{asked}&part=difference&of_type=cluster&of_name=changes")

    assert one.count('class="diff"') == 1
    assert "connect_timeout: 2s" in one
    assert every.count('class="diff"') == 3
    assert ">Fold all</a>" in every
    assert "<b>1</b> resource differs" in created
    assert ">comes</b>" in created
    assert (">goes</b>" in named, ">comes</b>" in named) == (True, False)
    assert "connect_timeout: 2s" in part
    assert "<main" not in part
    assert f"from={after}&to={before}" in links


@pytest.mark.parametrize("asked", ["from=x", "from=1&to=%22", "from=999999999999999999999", "from=1&to=99999"])
def test_compare__what_is_no_snapshot__is_said(asked: str, epochs: tuple[int, int], sign_in: SignIn) -> None:
    answer = sign_in(None, "").get(f"/e/default/compare?{asked}")

    assert answer.status_code in {404, 422}
    assert "snapshot" in answer.content.decode()


def test_reach__rules_of_groups__counts_clients_as_the_whole_table_does(environments: None) -> None:
    Fleet(3)
    publish(cluster("pay"))
    for key, node in (("first", "node-1"), ("nobody", "absent")):
        draft = GroupDraft(key, (Selector(node_id=node),), Trust.DECLARED)
        group_create(environment_key="default", draft=draft, actor=DANA)
    for effect, pattern, group in (
        (Effect.HIDE, "other*", "nobody"),
        (Effect.DENY, "pa*", "first"),
        (Effect.ALLOW, "pay", "nobody"),
    ):
        rule = RuleDraft(effect, pattern, client_groups=(group,))
        rule_create(environment_key="default", draft=rule, actor=DANA, consent=Consent(1))

    reach = reach_of(environment_key="default", kind=CLUSTER, name="pay")

    assert (reach.allowed, reach.denied, reach.hidden) == (2, 1, 0)
    assert [rule.effect for rule in reach.rules] == [Effect.DENY, Effect.ALLOW]
