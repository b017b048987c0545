"""Search: every kind by its words, several words, contents, what is not searched, the best first, and rights before
anything else.
"""

from collections.abc import Callable, Iterable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Principal, Role, Scope
from controlplane.accounts.services import api_token_create
from controlplane.catalog.marking import Mark
from controlplane.catalog.models import Change
from controlplane.catalog.services import Terms, change_apply, environment_create
from controlplane.catalog.values import EnvironmentPolicy, Put
from controlplane.clients.models import Client
from controlplane.clients.services import clients_label
from controlplane.common.limits import Limit
from controlplane.database.aliases import READER
from controlplane.discussion.models import Comment
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from controlplane.notify.models import Channel
from controlplane.search import contents, sources
from controlplane.search.selectors import search, sight_of
from controlplane.search.values import Hit, Kind, Results, Unsearched
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster, endpoints, parsed, route, tls_secret
from tests.support.principals import somebody
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.resource_types import by_word

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]
DANA = somebody("dana", ADMIN_SCOPES)
KEYS = ("default", "prod")


@pytest.fixture(autouse=True)
def prod(database: str) -> None:
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)


def found(text: str, who: Principal = DANA, *, partly: bool = False, **asked: object) -> Results:
    return search(sight=sight_of(who, KEYS, partly=partly), text=text, **asked)  # type: ignore[arg-type]


def hits(results: Results, kind: Kind) -> tuple[Hit, ...]:
    group = results.by_kind.get(kind)
    return group.hits if group is not None else ()


def names(text: str, kind: Kind = Kind.RESOURCE, who: Principal = DANA, *, partly: bool = False) -> list[str]:
    return [hit.name for hit in hits(found(text, who, partly=partly), kind)]


def write(*manifests: object, environment: str = "default", owner: str = "", message: str = "") -> str:
    edits = [Put(parsed(each)) for each in manifests]  # type: ignore[arg-type]
    made = change_apply(
        environment_key=environment, edits=edits, actor=DANA, terms=Terms(owner or None), message=message
    )
    return made.change_id


def say(text: str) -> None:
    change = Change.objects.latest("pk")
    Comment.objects.create(environment=change.environment, change=change, author="dana", principal="", text=text)


def role(*scopes: Scope) -> Principal:
    return somebody("rita", scopes)


def test_resources__by_name_owner_and_type__each_word_in_any_field() -> None:
    write(cluster("pay-eu"), owner="payments")
    write(cluster("pay-us"), route("pay-web", "pay-eu"))

    assert names("PAY") == ["pay-eu", "pay-us", "pay-web"]
    assert names("payments") == ["pay-eu"]
    assert names("eu payments") == ["pay-eu"]
    assert names("pay route") == ["pay-web"]
    assert names("pay nothing") == []


def test_labels__of_resources_and_clients__are_found_as_they_are_written_and_by_their_words() -> None:
    write(endpoints("cart", 8080, address="10.9.8.7"), cluster("pay"))
    mark = Mark(by_word["endpoint"], "cart", labels={"team": "shop"})
    change_apply(environment_key="default", edits=(), marks=(mark,), actor=DANA)
    Fleet(1)
    clients_label(environment_key="default", clients=[Client.objects.get().pk], edits={"team": "shop"}, actor=DANA)
    reader = role(Scope(Role.VIEWER, "prod"))
    limited = role(Scope(Role.VIEWER, "default", (Limit(names=("pay",)),)))

    for text in ("team=shop", "shop", "TEAM=sh", "cart shop", "team=shop 10.9.8.7"):
        assert names(text) == ["cart"], text
        assert names(text, who=reader) == names(text, who=limited, partly=True) == [], text
    for text in ("team=shop", "shop", "node-1 shop"):
        (hit,) = hits(found(text), Kind.CLIENT)
        assert (hit.name, hit.text.endswith("team=shop")) == ("node-1", True), text
        assert hits(found(text, reader), Kind.CLIENT) == ()


def test_resources__the_best_first__exact_then_prefix_then_within_then_contents() -> None:
    write(cluster("a-pay"), cluster("pay-2"), cluster("pay"), route("zzz", "pay"))

    listed = hits(found("pay"), Kind.RESOURCE)

    assert [hit.name for hit in listed] == ["pay", "pay-2", "a-pay", "zzz"]
    assert listed[3].found_at == "/virtual_hosts/0/routes/0/route/cluster"
    assert listed[3].excerpt == "pay"
    assert not any(hit.found_at for hit in listed[:3])


def test_contents__hold_a_word__found_with_its_place_together_with_words_of_the_name() -> None:
    write(endpoints("pay", 8080, address="10.9.8.7"), endpoints("cart", 8080, address="10.9.8.7"))

    (hit,) = hits(found("10.9.8.7 car"), Kind.RESOURCE)

    assert (hit.name, hit.excerpt) == ("cart", "10.9.8.7")
    assert hit.found_at.endswith("/socket_address/address")
    assert names("10.9.8") == ["cart", "pay"]
    assert found("10.9.8", contents=False).found == ()
    assert names("no:such") == []
    assert names("googleapis") == []  # the type of each
    assert names("80") == []  # numbers are no text, and two characters stand everywhere


def test_contents__old_revision_or_deleted__are_not_found() -> None:
    write(endpoints("pay", 8080, address="10.9.8.7"))
    write(endpoints("pay", 8080, address="10.9.8.8"))

    assert names("10.9.8.7") == []
    assert names("10.9.8.8") == ["pay"]


def test_contents__with_a_secret__are_not_searched_and_it_says_so() -> None:
    write(tls_secret("key", "hunter-two-hunter"), cluster("plain"))

    looked = found("hunter-two")

    assert looked.found == ()
    assert looked.unsearched == Unsearched(older=0, sealed=1)
    assert names("key") == ["key"]


def test_contents__beyond_the_bound__the_newest_are_searched_and_it_says_how_many_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(endpoints("old", 8080, address="10.9.8.7"))
    write(endpoints("new", 8080, address="10.9.8.7"))
    monkeypatch.setattr(contents, "MAX_BYTES", 150)

    looked = found("10.9.8.7")

    assert [hit.name for hit in hits(looked, Kind.RESOURCE)] == ["new"]
    assert looked.unsearched == Unsearched(older=1, sealed=0)


def test_changes__by_message_author_number_and_id__newest_first() -> None:
    first, second = write(cluster("a"), message="more patience"), write(cluster("b"), message="less patience")
    number = Change.objects.get(public_id=first).generation

    assert [hit.id for hit in hits(found("patience dana"), Kind.CHANGE)] == [second, first]
    assert first in [hit.id for hit in hits(found(str(number)), Kind.CHANGE)]
    assert [hit.id for hit in hits(found(f"change {number} patience"), Kind.CHANGE)] == [first]
    assert [hit.id for hit in hits(found(first[:8].upper()), Kind.CHANGE)] == [first]
    assert hits(found(first[:5]), Kind.CHANGE) == ()


def test_changes__many__only_the_newest_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    write(cluster("a"), message="patience")
    newest = write(cluster("b"), message="patience")
    monkeypatch.setattr(sources, "NEWEST", 1)

    assert [hit.id for hit in hits(found("patience"), Kind.CHANGE)] == [newest]


def test_everything_else__by_its_words() -> None:
    fleet = Fleet(2)
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2)), "strange words", suspects=(held("pay", 2),), who=slice(1))
    digest()
    group_create(
        environment_key="default", draft=GroupDraft("edge", (Selector(node_id="e-*"),), Trust.DECLARED), actor=DANA
    )
    draft = RuleDraft(Effect.DENY, "blocked-*", client_groups=("edge",), message="ask the bank")
    rule = rule_create(environment_key="default", draft=draft, actor=DANA)
    say("it was the bank")
    api_token_create(name="pipeline", scopes=ADMIN_SCOPES, actor=DANA)
    User.objects.create_user("mia", first_name="Mia", last_name="Berg")
    Channel.objects.create(name="on call", kind="mail", target="x@example.com")

    assert names("strange words", Kind.INCIDENT) == ["pay"]
    assert [hit.state for hit in hits(found("incident pay"), Kind.INCIDENT)] == ["open"]
    assert [hit.id for hit in hits(found(str(Incident.objects.get().public_id)[:6]), Kind.INCIDENT)]
    assert names("node-1", Kind.CLIENT) == ["node-1"]
    assert names(Client.objects.get(node_id="node-2").pk, Kind.CLIENT) == ["node-2"]
    assert names("e-*", Kind.GROUP) == ["edge"]
    assert [hit.id for hit in hits(found("edge bank"), Kind.RULE)] == [str(rule.id)]
    assert [hit.text for hit in hits(found("the bank"), Kind.COMMENT)] == ["it was the bank"]
    assert names("pipe", Kind.TOKEN) == ["pipeline"]
    assert names("berg mia", Kind.PERSON) == ["mia"]
    assert names("call", Kind.CHANNEL) == ["on call"]
    assert [hit.id for hit in hits(found("snapshot 1"), Kind.SNAPSHOT)] == ["1"]
    assert names("pro", Kind.ENVIRONMENT) == ["prod"]


def test_environment__beside_another_word__narrows_down_and_alone_finds_no_more_than_itself() -> None:
    write(cluster("pay"))
    write(cluster("pay"), environment="prod")

    assert [hit.environment for hit in hits(found("pay prod"), Kind.RESOURCE)] == ["prod"]
    assert [each.kind for each in found("prod").found if each.kind in (Kind.RESOURCE, Kind.SNAPSHOT)] == []
    assert hits(found("default prod"), Kind.RESOURCE) == ()


def test_more__than_are_listed__is_said() -> None:
    write(*(cluster(f"pay-{number}") for number in range(4)))

    group = found("pay", limit=3).by_kind[Kind.RESOURCE]

    assert (len(group.hits), group.more) == (3, True)
    assert found("pay", limit=4).by_kind[Kind.RESOURCE].more is False


@pytest.mark.parametrize(
    "text", ["\x00", "%", "_", "pay' OR 1=1", "\\", "a" * 5_000, "ß \u202e x", " ".join("abcdefghijk")]
)
def test_any_text__is_searched_for_as_it_is(text: str) -> None:
    write(cluster("pay"))

    assert hits(found(text), Kind.RESOURCE) == ()


def canary() -> None:
    """The word is in everything of `default`."""
    write(cluster("kanari", alt_stat_name="kanari-inside"), owner="kanari", message="kanari")
    fleet = Fleet(1)
    publish(cluster("kanari", connect_timeout="3s"))
    fleet.refuse(fleet.send(held("kanari", 2)), "kanari", suspects=(held("kanari", 2),))
    digest()
    rule_create(environment_key="default", draft=RuleDraft(Effect.ALLOW, "kanari"), actor=DANA)
    api_token_create(name="kanari", scopes=(Scope(Role.VIEWER, "default"),), actor=DANA)
    User.objects.create_user("kanari")
    Channel.objects.create(name="kanari", kind="mail", target="kanari@example.com")
    say("kanari")


@pytest.mark.parametrize("held_role", list(Role))
def test_rights__in_another_environment__find_nothing_by_no_word_and_count_nothing(held_role: Role) -> None:
    canary()
    stranger = role(Scope(held_role, "prod"))
    number = str(Change.objects.latest("pk").generation)
    words = (
        "kanari",
        "kanari-inside",
        "default",
        number,
        str(Incident.objects.get().public_id),
        "node-1",
        "change dana",
    )

    assert [found(word, stranger, partly=True).found for word in words] == [()] * len(words)
    assert found("kanari", stranger).unsearched == Unsearched()
    assert len(found("kanari").found) >= 7


def test_rights__of_a_viewer__find_no_people_channels_or_tokens_of_others() -> None:
    canary()
    kinds = {each.kind for each in found("kanari", role(Scope(Role.VIEWER, "default"))).found}

    assert kinds >= {Kind.RESOURCE, Kind.INCIDENT, Kind.CHANGE, Kind.RULE, Kind.COMMENT}
    assert kinds.isdisjoint({Kind.PERSON, Kind.CHANNEL, Kind.TOKEN, Kind.CLIENT_TOKEN})


def test_rights__with_limits__find_resources_within_them_and_nothing_else() -> None:
    write(cluster("pay-1", alt_stat_name="shared-word"), cluster("shop", alt_stat_name="shared-word"))
    write(tls_secret("other", "x"))
    limited = role(Scope(Role.VIEWER, "default", (Limit(types=("cluster",), names=("pay*",)),)))

    looked = found("shared-word", limited, partly=True)

    assert [(each.kind, [hit.name for hit in each.hits]) for each in looked.found] == [(Kind.RESOURCE, ["pay-1"])]
    assert looked.unsearched == Unsearched()  # nor is it told how many others there are
    assert names("shop", who=limited, partly=True) == []
    assert names("pay", who=limited) == []  # where limits are not known of


def queries(act: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as asked:
        act()
    return len(asked)


def test_queries__are_as_many_for_more_of_everything() -> None:
    canary()
    few = queries(lambda: found("kanari"))
    write(*_many(30))

    assert queries(lambda: found("kanari")) <= few
    assert few <= 18


def _many(count: int) -> Iterable[object]:
    return [cluster(f"kanari-{number}") for number in range(count)]
