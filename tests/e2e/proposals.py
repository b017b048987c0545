"""Change sets for the table of xdsctl's commands: one for each command that acts on one, and how each command ends."""

from collections.abc import Mapping
from typing import Final

from tests.support.manifests import cluster
from tests.support.stack import Parley
from tests.support.xdsctl import CONFLICT, DONE, LOSS, NO, NOT_THERE, UNDECIDED, USAGE

_NOWHERE: Final = "00000000-0000-0000-0000-000000000000"
# An editor that spells a field of the first resource wrongly.
CLUMSY: Final = '#!/bin/sh\nsed -i "s/connect_timeout/conect_timeout/" "$1"\n'
ROWS: Final[Mapping[str, Mapping[int, str]]] = {
    "changesets approve": {DONE: "{set_review}", NOT_THERE: _NOWHERE, CONFLICT: "{set_draft}"},
    "changesets cancel": {DONE: "{set_cancel}", NOT_THERE: _NOWHERE, CONFLICT: "{set_published}"},
    "changesets comment": {DONE: "{set_draft} why", NO: "{set_draft} why --on cluster/nobody"},
    "changesets create": {
        DONE: "--title m -f {good} -e m-sets",
        NO: "--title m -f {bad} -e m-sets",
        USAGE: "--title m --delete m",
    },
    "changesets delete": {
        DONE: "{set_delete} --yes",
        NOT_THERE: f"{_NOWHERE} --yes",
        CONFLICT: "{set_published} --yes",
    },
    "changesets diff": {DONE: "{set_empty}", NO: "{set_draft}"},
    "changesets edit": {
        DONE: "{set_edit} --title other",
        NO: "EDITOR={clumsy_set} {set_edit}",
        CONFLICT: "{set_edit} --title other --version 99",
    },
    "changesets get": {DONE: "{set_draft}", NOT_THERE: _NOWHERE},
    "changesets list": {DONE: "-e m-sets", NOT_THERE: "-e nowhere"},
    "changesets merge": {
        DONE: "{set_stale} cluster/m-moved=ours",
        NO: "{set_draft} cluster/nobody=ours",
        CONFLICT: "{set_published} cluster/m=ours",
        USAGE: "{set_draft} cluster/m=mine",
    },
    "changesets publish": {
        DONE: "{set_publish}",
        NOT_THERE: _NOWHERE,
        CONFLICT: "{set_rejected}",
        LOSS: "{set_losing}",
        UNDECIDED: "{set_unanswered} --wait --timeout 0ms",
    },
    "changesets reject": {
        DONE: "{set_reject} --reason why",
        NOT_THERE: f"{_NOWHERE} --reason why",
        CONFLICT: "{set_draft} --reason why",
    },
    "changesets schedule": {
        DONE: "{set_schedule} --not-before 2d",
        NO: "{set_schedule_never}",
        CONFLICT: "{set_rejected} --not-before 2d",
        LOSS: "{set_losing} --not-before 2d",
    },
    "changesets submit": {DONE: "{set_submit}", NOT_THERE: _NOWHERE, CONFLICT: "{set_rejected}"},
}


def proposed(parley: Parley) -> dict[str, str]:
    """A change set for each command that acts on one, in an environment of their own, where who made one may approve
    it; and two in that of the fleet.
    """
    review = {"self_approval": True}
    assert parley.call("POST", "/environments", {"key": "m-sets", "review": review}).status == 201
    for name in ("m-same", "m-moved"):
        assert parley.call("PUT", f"/environments/m-sets/resources/cluster/{name}", cluster(name)).status == 202

    def made(name: str, environment: str = "m-sets", *acts: str, **body: object) -> str:
        said = body or {"resources": [cluster(name, connect_timeout="9s")]}
        answer = parley.call("POST", f"/environments/{environment}/change-sets", {"title": name, **said})
        assert answer.status == 201, answer
        for act in acts:
            done = parley.call("POST", f"/change-sets/{answer.body['id']}/{act}", {"reason": "a drill"})
            assert done.status in {200, 202}, done
        return str(answer.body["id"])

    acts: dict[str, tuple[str, ...]] = {
        "cancel": ("submit",),
        "published": ("publish",),
        "reject": ("submit",),
        "rejected": ("submit", "reject"),
        "review": ("submit",),
    }
    alone = ("delete", "draft", "edit", "publish", "schedule", "schedule_never", "submit")
    found = {
        f"set_{word}": made(f"m-{word.replace('_', '-')}", "m-sets", *acts.get(word, ())) for word in (*acts, *alone)
    }
    found["set_empty"] = made("m-same", resources=[cluster("m-same")])
    found["set_stale"] = made("m-moved")
    moved = cluster("m-moved", connect_timeout="8s")
    assert parley.call("PUT", "/environments/m-sets/resources/cluster/m-moved", moved).status == 202
    found["set_losing"] = made("m-kept", "default", delete=[{"type": "cluster", "name": "m-kept"}])
    found["set_unanswered"] = made("m-kept", "default")
    return found
