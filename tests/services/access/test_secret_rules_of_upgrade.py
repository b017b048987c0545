"""The upgrade to where an environment's default no longer covers secrets: a rule takes the default's place where
clients got secrets by it, and every client gets what it got before.
"""

from io import StringIO

import pytest
from django.core.management import call_command

from controlplane.access.models import AccessEdit
from controlplane.access.selectors import access_table, rule_list, rule_state
from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply, environment_create
from controlplane.catalog.values import Delete, EnvironmentPolicy, Put
from controlplane.journal.models import AuditEvent
from controlplane.snapshots.selectors import snapshot_of_name
from tests.support.manifests import cluster, parsed, tls_secret
from tests.support.principals import somebody
from xdscore.access import AccessTable, Effect
from xdscore.client_groups import Trust
from xdscore.decision import Decision, Serve, decide
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.resource_types import SECRET

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
NAMED = (SECRET.word,)
EDGE, SHOP = ClientFacts(node_id="n", node_cluster="edge"), ClientFacts(identity="shop", node_id="s")


@pytest.fixture
def upgrade_due(database: str) -> None:
    """The tables as the first release left them: nothing of this version wrote any rule yet."""
    call_command("migrate", "access", "0001_initial", verbosity=0, interactive=False)


def upgraded() -> str:
    """What `migrate` prints when it upgrades."""
    out = StringIO()
    call_command("migrate", verbosity=1, interactive=False, stdout=out)
    return out.getvalue()


def put(*trees: dict[str, object], environment: str = "default") -> None:
    change_apply(environment_key=environment, edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def rule(effect: Effect, pattern: str = "*", **more: object) -> int:
    draft = RuleDraft(effect, pattern, **more)  # type: ignore[arg-type]
    return rule_create(environment_key="default", draft=draft, actor=DANA).id


def drafts(environment: str = "default") -> list[RuleDraft]:
    return [rule_state(row).draft for row in rule_list(environment_key=environment)]


def decided(client: ClientFacts, name: str) -> Decision:
    """What a client is told of what is published now."""
    snapshot = snapshot_of_name(environment_key="default", kind=SECRET, name=name)
    assert snapshot is not None
    return decide(snapshot.access.audience("default", client), SECRET, name, snapshot)


@pytest.mark.usefixtures("upgrade_due")
def test_upgrade__default_allows_and_there_is_a_secret__a_rule_is_written_said_and_built() -> None:
    rule(Effect.DENY, "internal*")
    put(tls_secret("key", "first"), cluster("a"))
    builds_sweep()
    generation = environment_get(key="default").generation

    said = upgraded()
    builds_sweep()

    written = drafts()[-1]
    assert written == RuleDraft(Effect.ALLOW, "*", position=20, types=NAMED)
    number = rule_list(environment_key="default").last().pk  # type: ignore[union-attr]
    assert f"Environment 'default': wrote access rule {number}, behind all others" in said
    edit = AccessEdit.objects.select_related("change").latest("pk")
    assert (edit.subject, edit.subject_id, edit.action) == ("rule", number, "created")
    assert (edit.before, edit.after) == (None, written.as_json())
    assert (edit.change.author, edit.change.kind) == (SYSTEM.name, "access")
    assert edit.change.generation == generation + 1 == environment_get(key="default").built_generation
    audited = AuditEvent.objects.latest("pk")
    assert (audited.actor, audited.verb, audited.subject) == (SYSTEM.name, "access_rule.created", f"rule/{number}")
    assert isinstance(decided(EDGE, "key"), Serve)
    assert not isinstance(decided(EDGE, "internal-key"), Serve)


@pytest.mark.usefixtures("upgrade_due")
def test_upgrade__rules_before_the_default__still_decide_and_nobody_gets_another_answer() -> None:
    shop = GroupDraft("shop", (Selector(identity="shop"),), Trust.VERIFIED)
    edge = GroupDraft("edge", (Selector(node_cluster="edge"),), Trust.DECLARED)
    for draft in (shop, edge):
        group_create(environment_key="default", draft=draft, actor=DANA)
    rule(Effect.HIDE, "p*", client_groups=("edge",))
    rule(Effect.ALLOW, "p*", client_groups=("shop", "edge"), types=NAMED)
    rule(Effect.DENY, "*-old")
    rule(Effect.ALLOW)
    put(*(tls_secret(name, "x") for name in ("pay", "web", "web-old")))
    names = ("pay", "web", "web-old", "absent", "p-absent")

    def answers(table: AccessTable) -> list[Effect]:
        return [
            table.ruling(table.audience("default", client), SECRET, name).effect
            for client in (EDGE, SHOP, ClientFacts(identity="other", node_id="o", node_cluster="edge"))
            for name in names
        ]

    now = access_table(environment_key="default")
    before = AccessTable(now.default, now.groups, now.rules, default_covers_secrets=True)

    upgraded()

    assert answers(access_table(environment_key="default")) == answers(before)
    assert answers(now) != answers(before)


@pytest.mark.usefixtures("upgrade_due")
def test_upgrade__default_gave_nobody_a_secret__nothing_is_written() -> None:
    environment_create(key="denying", policy=EnvironmentPolicy(default_effect=Effect.DENY), actor=DANA)
    environment_create(key="closed", policy=EnvironmentPolicy(default_effect=Effect.ALLOW), actor=DANA)
    rule_create(environment_key="closed", draft=RuleDraft(Effect.DENY, "*", types=NAMED), actor=DANA)
    for key in ("default", "denying", "closed"):
        put(tls_secret("key", "first"), environment=key)
    change_apply(environment_key="default", edits=[Delete(SECRET, "key")], actor=DANA)
    rules, changes = [drafts(key) for key in ("default", "denying", "closed")], Change.objects.count()

    said = upgraded()

    assert [drafts(key) for key in ("default", "denying", "closed")] == rules
    assert Change.objects.count() == changes
    assert "wrote access rule" not in said


@pytest.mark.usefixtures("upgrade_due")
def test_upgrade__done_already__is_not_done_or_said_again() -> None:
    put(tls_secret("key", "first"))
    upgraded()

    said = upgraded()
    call_command("migrate", "access", "0001_initial", verbosity=0, interactive=False)
    again = upgraded()

    assert "wrote access rule" not in said
    assert again.count("wrote access rule") == 1  # the one that is there, for whoever goes back and forth
    assert len(drafts()) == 1
