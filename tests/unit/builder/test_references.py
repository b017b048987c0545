"""References: what is missing holds its referrer and nobody else."""

from collections.abc import Iterable

import pytest

from controlplane.builder.stages.fallback import Cause, resolve
from controlplane.builder.stages.references import MAX_UNUSED, judge_references
from controlplane.builder.stages.wording import finding_counts, findings_of_held, other_findings
from controlplane.catalog.heads import Head
from xdscore.snapshot import Content, EntryKey, RemovedName, Served, WithheldName

NEW = Content(b"\1" * 16, "new", 10)
OLD = Content(b"\2" * 16, "old", 10)
ROUTE: EntryKey = ("route", "r")
CLUSTER: EntryKey = ("cluster", "c")
LISTENER: EntryKey = ("listener", "l")


def catalogue(*heads: Head) -> dict[EntryKey, Head]:
    return {head.key: head for head in heads}


def present(*keys: EntryKey) -> Iterable[Head]:
    return (Head(key, NEW) for key in keys)


def test_resolve__new_resource_refers_to_nothing__is_withheld_and_its_referrer_is_served() -> None:
    heads = catalogue(
        Head(LISTENER, NEW, references=(ROUTE,)),
        Head(ROUTE, NEW, references=(CLUSTER,)),
        *present(("cluster", "other")),
    )

    resolution = resolve(heads)

    assert resolution.entries[ROUTE] == WithheldName("it refers to a Cluster that does not exist")
    assert resolution.entries[LISTENER] == Served(NEW)
    assert [(each.key, each.cause, each.served) for each in resolution.held] == [
        (ROUTE, Cause.MISSING_REFERENCE, False)
    ]


def test_resolve__proven_before__runs_the_proven_revision() -> None:
    resolution = resolve(catalogue(Head(ROUTE, NEW, proven=OLD, references=(CLUSTER,))))

    assert resolution.entries[ROUTE] == Served(OLD, OLD)
    assert resolution.held[0].served


def test_resolve__acknowledged_as_it_is__is_served_on_and_told() -> None:
    gone = Head(CLUSTER, None)
    heads = catalogue(Head(ROUTE, NEW, proven=NEW, references=(CLUSTER,)), gone)

    resolution = resolve(heads)

    assert resolution.entries == {ROUTE: Served(NEW, NEW), CLUSTER: RemovedName()}
    assert resolution.held == ()
    finding, unused = other_findings(resolution, "prod", {(ROUTE, CLUSTER): "/virtual_hosts/0"})
    assert (finding.code, finding.resource_name, finding.pointer) == ("XDS2002", "r", "/virtual_hosts/0")
    assert (unused.code, unused.resource_type) == ("XDS2003", "route")
    assert finding.detail == "It refers to the Cluster 'c', which does not exist in 'prod'."


def test_resolve__quarantined_and_dangling__falls_back_once_and_says_quarantine() -> None:
    resolution = resolve(catalogue(Head(ROUTE, NEW, quarantined=True, proven=OLD, references=(CLUSTER,))))

    assert resolution.entries[ROUTE] == Served(OLD, OLD)
    assert [each.cause for each in resolution.held] == [Cause.REJECTED]


def test_findings_of_held__several_missing__are_all_told() -> None:
    targets: tuple[EntryKey, ...] = (("cluster", "a"), ("cluster", "b"))
    resolution = resolve(catalogue(Head(ROUTE, NEW, references=targets)))

    found = findings_of_held(resolution.held[0], resolution, "prod", {(ROUTE, targets[1]): "/p"})

    assert [(each.code, each.pointer) for each in found] == [("XDS2002", ""), ("XDS2002", "/p")]
    assert "'b'" in found[1].detail


@pytest.mark.parametrize(
    ("published", "held"),
    [
        ((), False),
        (("xdstp://other/envoy.config.cluster.v3.Cluster/x",), False),
        (("xdstp://corp/envoy.config.cluster.v3.Cluster/x",), True),
    ],
)
def test_resolve__xdstp_name_missing__holds_only_under_an_authority_of_this_environment(
    published: tuple[str, ...], held: bool
) -> None:
    wanted = ("cluster", "xdstp://corp/envoy.config.cluster.v3.Cluster/pay")
    heads = catalogue(Head(ROUTE, NEW, references=(wanted,)), *present(*(("cluster", name) for name in published)))

    resolution = resolve(heads)

    assert bool(resolution.held) is held
    assert finding_counts(resolution)["XDS2006"] == (not held)


def test_judge_references__unused__are_counted_and_the_first_ones_told() -> None:
    names: list[EntryKey] = [("endpoint", f"e{number:04}") for number in range(MAX_UNUSED + 50)]
    heads = catalogue(*present(*names, LISTENER), Head(CLUSTER, NEW, references=(names[0],)), Head(ROUTE, None))

    found = judge_references(heads)

    assert found.unused_count == len(names) - 1 + 1  # endpoints but the one that is used, and the cluster
    assert found.unused == (CLUSTER, *names[1:MAX_UNUSED])
