"""Which environment a stream belongs to."""

import pytest

from xdscore.environment_choice import ClientFacts, EnvironmentChoice, Selector, choose_environment

PROD = EnvironmentChoice("prod", (Selector(node_id="prod-*"), Selector(node_cluster="pay", metadata={"stage": "live"})))
TEAM = EnvironmentChoice("team", (Selector(identity="spiffe://corp/ns/team/*"),))


@pytest.mark.parametrize(
    ("client", "environment"),
    [
        (ClientFacts(node_id="prod-1"), "prod"),
        (ClientFacts(node_id="x", node_cluster="pay", metadata={"stage": "live"}), "prod"),
        (ClientFacts(node_id="x", node_cluster="pay"), "default"),
        (ClientFacts(node_id="x"), "default"),
        (ClientFacts(identity="spiffe://corp/ns/team/sa/a", node_id="x"), "team"),
    ],
)
def test_choose_environment__facts__lead_to_the_first_match(client: ClientFacts, environment: str) -> None:
    assert choose_environment(client, (PROD, TEAM)) == environment


def test_choose_environment__verified_client_claims_a_node_id__the_claim_does_not_count() -> None:
    impostor = ClientFacts(identity="spiffe://corp/ns/other/sa/b", node_id="prod-1")

    assert choose_environment(impostor, (PROD, TEAM)) == "default"


def test_selector__without_fields__matches_nobody() -> None:
    assert not Selector().matches(ClientFacts(node_id="x"))
    assert not Selector().matches(ClientFacts(identity="spiffe://corp/x"))


def test_selector__identity_of_a_client_that_proved_nothing__matches_nobody() -> None:
    assert not Selector(identity="*").matches(ClientFacts(node_id="x"))


BOUND = EnvironmentChoice("prod", (), ("{name}", "{name}/*", "edge-*"))


@pytest.mark.parametrize(
    ("identity", "node_id", "taken"),
    [
        ("spiffe://corp/ns/a/sa/pay", "pay", True),
        ("spiffe://corp/ns/a/sa/pay", "pay/7d9f", True),
        ("spiffe://corp/ns/a/sa/pay", "edge-1", True),
        ("pay", "pay", True),
        ("spiffe://corp/ns/a/sa/pay", "pay-1", False),
        ("spiffe://corp/ns/a/sa/pay", "payroll", False),
        ("spiffe://corp/ns/a/sa/pay", "Pay", False),
        ("spiffe://corp/ns/a/sa/pay", "{name}", False),
        ("team/*", "anything", False),
        ("", "anything", True),
    ],
)
def test_takes_node__verified_identity__only_the_nodes_of_its_name(identity: str, node_id: str, taken: bool) -> None:
    assert BOUND.takes_node(ClientFacts(identity, node_id)) is taken


def test_takes_node__without_patterns__any_node() -> None:
    assert TEAM.takes_node(ClientFacts("spiffe://corp/ns/team/sa/a", "anything"))
