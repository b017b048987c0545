"""The page of clients and features is what the marks of the tests say, and has what was asked for."""

from pathlib import Path

from scripts.clients_page import page, rows, versions

ROOT = Path(__file__).resolve().parents[3]


def test_page__of_clients_and_features__is_what_the_tests_say() -> None:
    said = (ROOT / "docs/reference/clients-and-features.md").read_text(encoding="utf-8")

    assert said == page(), "make clients"


def test_rows__every_client__has_some() -> None:
    assert {row.client for row in rows()} == versions().keys()


def test_rows__of_envoy__have_every_service_of_the_protocol_that_it_asks_for() -> None:
    features = " ".join(row.feature for row in rows() if row.client == "Envoy")

    services = ("CDS", "LDS", "EDS", "RDS", "SDS", "SRDS", "VHDS", "ECDS", "RTDS", "on-demand CDS", "CSDS")
    assert [each for each in services if each not in features] == []
