"""Labels over REST: set on one resource, filtered by, exported and imported; and one act upon many."""

import yaml

from controlplane.accounts.principal import Role, Scope
from controlplane.common.limits import Limit
from tests.api.conftest import Caller, assert_problem, caller
from tests.support.manifests import cluster

HERE = "environments/default"
PAY = f"{HERE}/resources/cluster/pay"
TEAM = {"team": "pay", "tier": "1"}


def names(api: Caller, query: str) -> list[str]:
    return [row["name"] for row in api.get(f"{HERE}/resources?{query}").json["results"]]


def test_patch__labels_and_owner__are_set_and_removed_and_make_no_revision(api: Caller) -> None:
    api.put(PAY, cluster())

    set_ = api.patch(f"{PAY}?message=sorted", {"labels": TEAM, "owner": "Pia"})
    again = api.patch(PAY, {"labels": TEAM})
    removed = api.patch(PAY, {"labels": {"tier": None}})

    assert (set_.status, set_.json["kind"], set_.json["message"]) == (202, "labels", "sorted")
    assert set_.json["labels"] == [{"type": "cluster", "name": "pay", "before": {}, "after": TEAM}]
    assert set_.json["owners"] == [{"type": "cluster", "name": "pay", "before": "", "after": "Pia"}]
    assert (again.status, again.json) == (200, {"changed": False})
    assert removed.json["message"] == "labels of cluster 'pay': tier-"
    row = api.get(f"{PAY}?status=true").json
    assert (row["labels"], row["owner"], row["revision"]) == ({"team": "pay"}, "Pia", 1)
    change = api.get(f"changes/{set_.json['id']}").json
    assert (change["edit_count"], change["labels"]) == (0, set_.json["labels"])


def test_patch__what_cannot_be_set__is_refused_with_every_problem(api: Caller) -> None:
    api.put(PAY, cluster())

    wrong = api.patch(PAY, {"labels": {"-a": "x", "b": "-"}, "ownr": "x"})
    shape = api.patch(PAY, {"labels": {"a": 1}})
    nothing = api.patch(PAY, {})

    assert_problem(wrong, 422, "XDS1000")
    assert sorted(wrong.pointers) == ["/labels", "/labels", "/ownr"]
    assert_problem(shape, 422, "XDS1000")
    assert_problem(nothing, 422, "XDS1000")
    assert_problem(api.patch(f"{HERE}/resources/cluster/nobody", {"labels": TEAM}), 404, "XDS3004")
    assert_problem(api.patch(PAY, {"labels": TEAM}, If_Match='"r7"'), 412, "XDS3012")
    assert api.get(f"{PAY}?status=true").json["labels"] == {}


def test_patch__by_somebody_limited__labels_their_own_alone_and_they_see_the_change(api: Caller) -> None:
    api.put(f"{PAY}?owner=pay", cluster())
    api.put(f"{HERE}/resources/cluster/shop?owner=shop", cluster("shop"))
    pia = caller(Scope(Role.EDITOR, "default", (Limit(owner="pay"),)))

    mine, theirs = pia.patch(PAY, {"labels": TEAM}), pia.patch(f"{HERE}/resources/cluster/shop", {"labels": TEAM})

    assert_problem(theirs, 403, "XDS3003")
    assert pia.get(f"changes/{mine.json['id']}").json["labels"] == mine.json["labels"]
    assert pia.post(f"changes/{mine.json['id']}/undo", {"reason": "r"}).status == 202


def test_list__by_a_selector__has_those_alone_and_a_bad_one_is_refused(api: Caller) -> None:
    for name in ("pay", "shop"):
        api.put(f"{HERE}/resources/cluster/{name}", cluster(name))
    api.patch(PAY, {"labels": TEAM})

    assert names(api, "label=team%3Dpay") == ["pay"]
    assert names(api, "label=!team") == ["shop"]
    assert names(api, "label=team,tier!%3D1") == []
    assert_problem(api.get(f"{HERE}/resources?label=a%20in%20(b)"), 422, "XDS1000")


def test_export__applied_elsewhere__has_the_same_labels_and_applied_again_changes_nothing(api: Caller) -> None:
    api.post("environments", {"key": "copy"})
    for name in ("pay", "shop"):
        api.put(f"{HERE}/resources/cluster/{name}", cluster(name))
    api.patch(PAY, {"labels": TEAM})

    file = api.get(f"{HERE}/resources?manifests=true", Accept="application/yaml").content

    assert [each.get("@labels") for each in yaml.safe_load(file)] == [TEAM, None]
    assert api.post("environments/copy/apply", file, media="application/yaml").status == 202
    assert api.get("environments/copy/resources?label=team%3Dpay").json["count"] == 1
    assert api.post(f"{HERE}/apply", file, media="application/yaml").json == {"changed": False}


def test_apply__labels_alone__is_a_change_of_labels_and_its_dry_run_says_so(api: Caller) -> None:
    api.put(PAY, cluster())
    body = {"resources": [{**cluster(), "@labels": TEAM}]}

    dry = api.post(f"{HERE}/apply?dry_run=true", body)
    made = api.post(f"{HERE}/apply", body)

    assert (dry.json["changed"], dry.json["diff"]) == (True, [])
    assert dry.json["labels"] == made.json["labels"]
    assert (made.json["kind"], made.json["edits"]) == ("labels", [])


def test_change_set__of_a_manifest_with_labels__sets_them_when_it_is_published(api: Caller) -> None:
    api.put(PAY, cluster())
    made = api.post(
        f"{HERE}/change-sets", {"title": "t", "resources": [{**cluster(connect_timeout="2s"), "@labels": TEAM}]}
    )

    published = api.post(f"change-sets/{made.json['id']}/publish", {"reason": "r"})

    assert published.status < 300, published.json
    assert api.get(f"{PAY}?status=true").json["labels"] == TEAM


def test_bulk__by_name_and_by_filter__does_all_as_one_change(api: Caller) -> None:
    for name in ("pay", "shop", "other"):
        api.put(f"{HERE}/resources/cluster/{name}", cluster(name))
    chosen = [{"type": "cluster", "name": name, "revision": 1} for name in ("pay", "shop")]

    labelled = api.post(
        f"{HERE}/resources/bulk?message=why", {"act": "labels", "resources": chosen, "labels": {"x": "1"}}
    )
    given = api.post(f"{HERE}/resources/bulk", {"act": "owner", "select": {"label": "x"}, "owner": "Pia"})
    dry = api.post(f"{HERE}/resources/bulk?dry_run=true", {"act": "delete", "select": {"owner": "Pia"}})
    deleted = api.post(f"{HERE}/resources/bulk", {"act": "delete", "select": {"owner": "Pia"}})

    assert (labelled.status, labelled.json["message"], len(labelled.json["labels"])) == (202, "why", 2)
    assert [each["after"] for each in given.json["owners"]] == ["Pia", "Pia"]
    assert dry.json["edits"] == deleted.json["edits"]
    assert names(api, "") == ["other"]
    assert api.post(f"changes/{deleted.json['id']}/undo", {"reason": "r"}).status == 202
    assert names(api, "owner=Pia") == ["pay", "shop"]


def test_bulk__stale_and_forbidden__are_named_all_at_once(api: Caller) -> None:
    for name in ("pay", "shop", "other"):
        api.put(f"{HERE}/resources/cluster/{name}?owner={name}", cluster(name))
    chosen = [{"type": "cluster", "name": name, "revision": 2} for name in ("pay", "shop")]
    pia = caller(Scope(Role.EDITOR, "default", (Limit(owner="other"),)))

    stale = api.post(f"{HERE}/resources/bulk", {"act": "delete", "resources": chosen})
    forbidden = pia.post(f"{HERE}/resources/bulk", {"act": "delete", "resources": chosen})
    within = pia.post(f"{HERE}/resources/bulk", {"act": "labels", "select": {"type": "cluster"}, "labels": {"x": "1"}})

    assert_problem(stale, 412, "XDS3012")
    assert [each["resource"]["name"] for each in stale.json["errors"]] == ["pay", "shop"]
    assert_problem(forbidden, 403, "XDS3003")
    assert [each["resource"]["name"] for each in forbidden.json["errors"]] == ["pay", "shop"]
    assert [each["name"] for each in within.json["labels"]] == ["other"]


def test_bulk__fields_that_do_not_go_together__are_refused(api: Caller) -> None:
    for body, pointers in (
        ({"act": "delete"}, ["/resources"]),
        ({"act": "delete", "select": {}}, ["/select"]),
        ({"act": "delete", "select": {"name": "p"}, "owner": "x"}, ["/owner"]),
        ({"act": "labels", "select": {"name": "p"}}, ["/labels"]),
        ({"act": "quarantine", "select": {"name": "p"}}, ["/act"]),
        ({"act": "delete", "resources": [{"type": "x", "name": ""}]}, ["/resources/0/type", "/resources/0/name"]),
        ({"act": "delete", "select": {"label": "a in (b)"}}, ["/select/label"]),
    ):
        answer = api.post(f"{HERE}/resources/bulk", body)
        assert_problem(answer, 422, "XDS1000")
        assert sorted(answer.pointers) == sorted(pointers), body


def test_quarantines__by_name__takes_out_of_service_and_puts_back_as_one_change(api: Caller) -> None:
    for name in ("pay", "shop"):
        api.put(f"{HERE}/resources/cluster/{name}", cluster(name))
    body = {"act": "quarantine", "select": {"type": "cluster"}, "reason": "bad"}

    opened = api.post(f"{HERE}/quarantines", body)
    again = api.post(f"{HERE}/quarantines", body)
    released = api.post(f"{HERE}/quarantines", {**body, "act": "release"})

    assert (opened.status, opened.json["kind"]) == (202, "quarantine")
    assert again.json == {"changed": False}
    assert released.json["message"] == "release of 2 resources: bad"
    assert_problem(api.post(f"{HERE}/quarantines", {"act": "release", "select": {"type": "cluster"}}), 422, "XDS1000")
