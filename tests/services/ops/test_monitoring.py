"""The dashboard and the alert rules ask for what the processes really tell; the reference page lists all of it."""

import asyncio
import re
from collections.abc import Iterator, Mapping

import promql_parser
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from adsserver.metrics import Metrics
from controlplane.api import rates
from controlplane.console import page_rates
from controlplane.ops.condition_metrics import ConditionCollector
from controlplane.ops.http_metrics import HttpMetrics, Message, Receive, Send
from tests.support.monitoring import JOBS, QUERIES, ROOT, RULES, nodes, selectors
from xdscore.build import build_info
from xdscore.status_http import Readiness, readiness_metrics

# Told by Prometheus itself, or by its library about the process.
OF_EVERY_PROCESS = ("up", "process_resident_memory_bytes", "process_cpu_seconds_total")

# One path of each surface.
PATHS = (
    ("/", b""),
    ("/api/v1/environments", b""),
    ("/api/v1/changes/1", b"wait=1s"),
    ("/static/app.css", b""),
    ("/readyz", b""),
)

Labels = dict[str, set[str]]


@pytest.fixture
def told(db: None) -> Mapping[str, Labels]:
    """Every sample that a scrape can find: its labels and their values, which are closed sets."""
    found: dict[str, Labels] = {name: {"job": JOBS} for name in OF_EVERY_PROCESS}
    for sample in ours():
        labels = found.setdefault(sample.name, {})
        for label, value in sample.labels.items():
            labels.setdefault(label, set()).add(value)
    return found


def ours() -> Iterator[Sample]:
    """What our own processes tell, in the state of the first second."""
    ads, web = CollectorRegistry(), CollectorRegistry()
    Metrics(ads)
    asyncio.run(some_requests(web))
    ready = b"".join(readiness_metrics(role, Readiness()) for role in ("web", "worker", "beat", "ads"))
    page = generate_latest(ads) + ready + generate_latest(web) + build_info("web")
    pages = text_string_to_metric_families(page.decode())
    refused = (*rates.REFUSED.collect(), *page_rates.REFUSED.collect())
    for metric in (*pages, *ConditionCollector().collect(), *refused):
        yield from metric.samples


async def some_requests(registry: CollectorRegistry) -> None:
    """One request of each surface with each class of answer."""

    async def application(scope: Message, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": scope["status"], "headers": []})

    async def nothing() -> Message:
        return {"type": "http.disconnect"}

    async def nowhere(_message: Message) -> None:
        pass

    counted = HttpMetrics(application, registry)
    for status in (200, 302, 404, 500):
        for path, query in PATHS:
            scope = {"type": "http", "path": path, "query_string": query, "status": status}
            await counted(scope, nothing, nowhere)


@pytest.mark.parametrize("title", QUERIES)
def test_query__of_an_alert_or_a_panel__asks_for_what_there_is(title: str, told: Mapping[str, Labels]) -> None:
    asked = selectors(QUERIES[title])

    assert asked
    for metric, matchers in asked:
        assert metric in told
        for matcher in matchers:
            values = told[metric].get(matcher.name)
            assert values is not None, f"{metric} has no label {matcher.name}"
            # Ours are plain alternatives, which mean the same to Python.
            assert any(re.fullmatch(matcher.value, value) for value in values), f"no {matcher.name} is {matcher.value}"


@pytest.mark.parametrize("title", QUERIES)
def test_query__groups_by_labels__its_metrics_have_them(title: str, told: Mapping[str, Labels]) -> None:
    of_the_scrape = {"instance", "job"}

    for node in nodes(QUERIES[title]):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            known = {label for metric, _ in selectors(node.expr.prettify()) for label in told[metric]}
            assert set(node.modifier.labels) <= known | of_the_scrape


def test_alerts__each__says_how_urgent_it_is_what_it_means_and_what_to_do() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in {"page", "ticket", "info"}
        assert rule["annotations"].keys() == {"summary", "description"}
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names))


def test_reference__of_metrics__lists_all_that_are_told_and_no_other(told: Mapping[str, Labels]) -> None:
    page = (ROOT / "docs/reference/metrics.md").read_text()
    listed = set(re.findall(r"^\| `(parley_[a-z_]+)`", page, re.MULTILINE))

    of_one_histogram = re.compile(r"_(bucket|sum|count)$")
    ours_alone = (name for name in told if name.startswith("parley_") and not name.endswith("_created"))
    assert listed == {of_one_histogram.sub("", name) for name in ours_alone}
