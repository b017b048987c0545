"""Certificates expire without a write: findings of today, and people who are told once each time."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.expiry import findings_at
from controlplane.catalog.models import Revision
from controlplane.catalog.services import certificates_watch, change_apply, environment_default_ensure
from controlplane.catalog.values import Delete, Put
from controlplane.journal.models import DomainEvent
from tests.support.certificates import Authority
from tests.support.manifests import TYPE, Tree
from tests.support.principals import somebody
from xdscore.resource_types import SECRET
from xdscore.schema import Media, ParsedResource, parse, read_manifests

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
KEY = ("secret", "edge")


def secret(*, ends: timedelta, name: str = "edge") -> Tree:
    key, certificate = Authority("test").issue(dns="edge", ends=ends)
    chain = {"inline_string": certificate.decode()}
    pair = {"certificate_chain": chain, "private_key": {"inline_string": key.decode()}}
    url = TYPE + "envoy.extensions.transport_sockets.tls.v3.Secret"
    return {"@type": url, "name": name, "tls_certificate": pair}


def put(*trees: Tree) -> Revision:
    parsed = [
        parse(manifest, now=timezone.now()) for manifest in read_manifests(json.dumps(trees).encode(), Media.JSON)[0]
    ]
    edits = [Put(each) for each in parsed if isinstance(each, ParsedResource)]
    change_apply(environment_key="default", edits=edits, actor=DANA)
    return Revision.objects.latest("id")


def said(revision: Revision, now: datetime) -> list[tuple[str, str]]:
    return [(each.code, each.pointer) for each in findings_at(revision, KEY, now)]


def told() -> Iterator[tuple[str, bool]]:
    for event in DomainEvent.objects.filter(kind="certificate.expiring").order_by("id"):
        yield event.payload["name"], event.payload["expired"]


def test_findings_at__time_passes__the_certificate_expires_soon_and_then_is_expired(database: str) -> None:
    now = timezone.now()
    revision = put(secret(ends=timedelta(days=40)))

    assert said(revision, now) == []
    assert said(revision, now + timedelta(days=20)) == [("XDS1084", "/0/tls_certificate/certificate_chain")]
    assert said(revision, now + timedelta(days=41)) == [("XDS1083", "/0/tls_certificate/certificate_chain")]


def test_findings_at__expiring_when_written__is_said_once_and_as_it_is_today(database: str) -> None:
    now = timezone.now()
    revision = put(secret(ends=timedelta(days=10)))

    assert [each["code"] for each in revision.findings] == ["XDS1084"]
    assert said(revision, now) == [("XDS1084", "/0/tls_certificate/certificate_chain")]
    assert said(revision, now + timedelta(days=11)) == [("XDS1083", "/0/tls_certificate/certificate_chain")]


def test_certificates_watch__time_passes__tells_once_at_each_step(database: str) -> None:
    now = timezone.now()
    put(secret(ends=timedelta(days=20)), secret(ends=timedelta(days=400), name="fresh"))

    counts = [certificates_watch(now=now + timedelta(days=day)) for day in (0, 7, 8, 17.5, 18, 19.5, 20.5, 30)]

    assert counts == [0, 1, 0, 1, 0, 1, 1, 0]
    assert list(told()) == [("edge", False)] * 3 + [("edge", True)]


def test_certificates_watch__first_seen_one_day_before__tells_the_most_urgent_only(transactional_db: None) -> None:
    environment_default_ensure()
    now = timezone.now()
    put(secret(ends=timedelta(hours=12)))

    assert [certificates_watch(now=now), certificates_watch(now=now)] == [1, 0]


def test_certificates_watch__renewed_or_deleted__is_no_news(transactional_db: None) -> None:
    environment_default_ensure()
    now = timezone.now()
    put(secret(ends=timedelta(days=2)), secret(ends=timedelta(days=2), name="gone"))
    put(secret(ends=timedelta(days=90)))
    change_apply(environment_key="default", edits=[Delete(SECRET, "gone")], actor=DANA)

    assert certificates_watch(now=now) == 0
