"""Change sets, and what somebody in front of the console sees of them and sends."""

import re
from dataclasses import replace
from typing import Any

from django.test import Client

from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.review import ReviewSettings
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import environment_update
from controlplane.catalog.values import Put
from controlplane.changesets.models import ChangeSet
from controlplane.changesets.selectors import change_set_get
from controlplane.changesets.services import change_set_create, change_set_submit
from controlplane.changesets.values import SetState
from tests.support.manifests import cluster, parsed
from tests.web.conftest import DANA
from tests.web.test_loss_questions import Fields

HERE = "/e/default"
SETS = f"{HERE}/change-sets"
NEW = f"{HERE}/resources/new"
EDIT = f"{HERE}/resource/edit?type=cluster&name=pay"
PAY = f"{HERE}/resource?type=cluster&name=pay"
_TEXT = '"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: {name}\nconnect_timeout: {timeout}\n'


def text(name: str = "pay", timeout: str = "7s") -> str:
    return _TEXT.format(name=name, timeout=timeout)


def proposed(*names: str, timeout: str = "3s", title: str = "more time", **more: Any) -> str:
    edits = [Put(parsed(cluster(name, connect_timeout=timeout))) for name in names or ("pay",)]
    return change_set_create(environment_key="default", title=title, edits=edits, actor=DANA, **more)


def submitted(*names: str, **more: Any) -> str:
    made = proposed(*names, **more)
    change_set_submit(public_id=made, actor=DANA)
    return made


def review(**more: Any) -> None:
    """From now on `default` takes reviewed change sets only."""
    before = environment_get(key="default").policy
    environment_update(
        key="default", policy=replace(before, review=ReviewSettings(required=True, **more)), actor=SYSTEM
    )


def state(public_id: str) -> SetState:
    return change_set_get(public_id=public_id).view.state


def version(public_id: str) -> int:
    return change_set_get(public_id=public_id).view.version


def send(who: Client, public_id: str, action: str, **fields: Any) -> Any:
    """Send a form of the page, with the version that the page shows now."""
    return who.post(f"/change-sets/{public_id}", {"action": action, "version": version(public_id), **fields})


def forms(shown: str) -> list[dict[str, list[str]]]:
    parser = Fields()
    parser.feed(shown)
    return parser.forms


def buttons(shown: str) -> set[str]:
    return set(re.findall(r'name="action" value="([a-z]+)"', shown))


def newest() -> ChangeSet:
    return ChangeSet.objects.latest("pk")
