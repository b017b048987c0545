"""Every page of the console with the questions that cost most, for whoever measures them or counts their queries.

Each page is here by its path; the table says what to ask of one where its bare address is not all. Loaded only once
Django is set up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from django.contrib.auth.models import Group, User

from bench.console_fleet import ENVIRONMENT, client_of
from bench.resources import cluster_name
from controlplane.catalog.change_log import change_list
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.filtering import ChangeFilter
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.staging import changes_of_rollout
from controlplane.changesets.selectors import change_sets_of
from controlplane.console.urls import urlpatterns
from controlplane.incidents.models import Incident
from controlplane.notify.models import Channel
from controlplane.rollouts.selectors import rollouts_of
from controlplane.routecases.selectors import case_list


@dataclass(frozen=True, slots=True)
class Subject:
    """The names and ids with which the addresses of pages are filled in. `change`: it wrote resources and everybody has
    it; `deciding`: it wrote who may read what; `staged`: the open `rollout` has it; `change_set`: the newest,
    which waits for review.
    """

    env: str
    epoch: int
    change: str
    deciding: str
    staged: str
    rollout: str
    change_set: str
    incident: str
    client: str
    name: str
    user: int
    group: int
    channel: str
    route_case: int


# They show no data, or one text.
WITHOUT_DATA: Final = frozenset(
    {
        *("login", "login-oidc", "login-oidc-callback", "login-second-factor", "login-second-factor-setup", "logout"),
        *("theme", "rows", "zone", "invitation", "invitation-link"),
        *("comment", "comments", "resources-bulk", "clients-bulk"),
    }
)
_OF_NAME: Final = "type=cluster&name={name}"
# By the name of its path; a page of several parts has an entry for each.
QUESTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "home": ("/", "/?part=now", "/?part=charts"),
    "explain": ("/x?e={env}&t=cluster&n={name}", "/x?e={env}&t=cluster&n={name}&c={client}&at={epoch}"),
    "search": (
        "/search?q=service",
        "/search?q=nothing+is+called+so",
        "/search?q=node-",
        "/search?q=node-&kind=client",
        "/search?q=10.0.1.7&kind=resource",
        "/search?q=explain+service+for+node-1",
        "/search?part=options&q=service",
        "/search?part=options&q=nothing+is+called+so",
        "/search?part=options&q=quarantine+service",
    ),
    "code": ("/codes/XDS2002",),
    "incidents": (
        "/e/{env}/incidents",
        "/e/{env}/incidents?state=all&q=filter",
        "/e/{env}/incidents?client=node-1&since=7d",
        "/e/{env}/incidents?assignee=nobody",
        "/e/{env}/incidents?sort=-last&until=1m",
    ),
    "clients": (
        "/e/{env}/clients",
        "/e/{env}/clients?state=refusing",
        "/e/{env}/clients?q=node-1&page=2",
        "/e/{env}/clients?sort=-seen&since=2h",
        "/e/{env}/clients?label=team%3Dpay",
        "/e/{env}/clients?page=100",
    ),
    "client": ("/clients/{client}", "/clients/{client}?part=tail"),
    "over-time": ("/e/{env}/over-time", "/e/{env}/over-time?period=24h", "/e/{env}/over-time?period=all"),
    "client-resources": ("/clients/{client}/resources", "/clients/{client}/resources?type=cluster&state=NACKED&at=1h"),
    "access": (
        "/e/{env}/access",
        "/e/{env}/access?name={name}&type=cluster&node_id=node-1",
        "/e/{env}/access?effect=allow&state=on&findings=without",
    ),
    "client-groups": ("/e/{env}/access/groups", "/e/{env}/access/groups?text=node&sort=-rules"),
    "builds": ("/e/{env}/builds", "/e/{env}/builds?outcome=published&since=7d&sort=-held"),
    "route-cases": ("/e/{env}/route-cases", "/e/{env}/route-cases?state=holds&text=a&sort=-changed"),
    "setup": ("/e/{env}/setup", "/e/{env}/setup?part=ticks"),
    "inbox": ("/messages", "/messages?environment={env}", "/messages?for=me"),
    "channel": ("/channels/{channel}", "/channels/{channel}?state=failed&kind=hold.released"),
    "channel-new": ("/channels/new", "/channels/new?kind=digest"),
    "audit": ("/audit", "/audit?environment={env}&actor=parley", "/audit?since=2h&sort=time"),
    "tokens": ("/tokens", "/tokens?kind=client&text=workload&state=good", "/tokens?by=a&sort=-used"),
    "users": ("/users", "/users?text=person", "/users?role=viewer&state=active&sort=-seen"),
    "people-groups": ("/users/groups", "/users/groups?role=viewer&sort=-users"),
    "channels": ("/channels", "/channels?state=failing&sort=-last"),
    "resources": (
        "/e/{env}/resources",
        "/e/{env}/resources?type=endpoint&name=service",
        "/e/{env}/resources?page=3",
        "/e/{env}/resources?status=published",
        "/e/{env}/resources?findings=without&author=parley&since=7d&sort=-changed",
        "/e/{env}/resources?sort=owner&page=100",
    ),
    "resource": tuple(
        f"/e/{{env}}/resource?{_OF_NAME}&tab={tab}"
        for tab in ("current", "history", "links", "clients", "access", "incidents", "comments")
    ),
    "graph": (
        "/e/{env}/graph",
        "/e/{env}/graph?part=data",
        f"/e/{{env}}/graph?{_OF_NAME}",
        "/e/{env}/graph?client={client}",
        "/e/{env}/graph?q=service",
    ),
    "request": (
        "/e/{env}/request?authority=0.0.example.com&path=/v1/pay",
        "/e/{env}/request?authority=no.example.com&path=/v1/pay&client={client}",
        "/e/{env}/request?authority=0.0.example.com&path=/v1/pay&client={client}&at={epoch}",
    ),
    "resource-edit": (f"/e/{{env}}/resource/edit?{_OF_NAME}",),
    "export": ("/e/{env}/export?type=cluster&name={name}",),
    "changes": (
        "/e/{env}/changes",
        "/e/{env}/changes?text=service",
        "/e/{env}/changes?author=parley&since=2h&sort=-resources",
    ),
    "change": ("/changes/{change}", "/changes/{change}?part=progress", "/changes/{deciding}", "/changes/{staged}"),
    "change-sets": (
        "/e/{env}/change-sets",
        "/e/{env}/change-sets?state=review",
        "/e/{env}/change-sets?text=a&since=1h",
    ),
    "change-set": (
        "/change-sets/{change_set}",
        "/change-sets/{change_set}?page=2",
        "/change-sets/{change_set}?part=prospect",
    ),
    "change-set-resource": (f"/change-sets/{{change_set}}/resource?{_OF_NAME}",),
    "change-set-rule": ("/change-sets/{change_set}/rule?name=new-1",),
    "change-set-group": ("/change-sets/{change_set}/group?name=proposed",),
    "rollout": ("/rollouts/{rollout}", "/rollouts/{rollout}?part=now", "/rollouts/{rollout}?part=clients&side=stable"),
    "compare": ("/e/{env}/compare?from=1&to=live", "/e/{env}/compare?from=1&to={epoch}"),
    "rollback": ("/e/{env}/rollback?to=1",),
    "snapshots": ("/e/{env}/snapshots", "/e/{env}/snapshots?since=1h&sort=epoch"),
    "rollouts": ("/e/{env}/rollouts", "/e/{env}/rollouts?state=running&since=7d"),
    "views": ("/e/{env}/views/resources",),
    "views-anywhere": ("/views/audit",),
}


_PARTS: Final = {
    "<uuid:change_set_id>": "{change_set}",
    "<uuid:rollout_id>": "{rollout}",
    "<str:environment_key>": "{env}",
    "<uuid:change_id>": "{change}",
    "<str:incident_id>": "{incident}",
    "<str:client_id>": "{client}",
    "<int:epoch>": "{epoch}",
    "<int:user_id>": "{user}",
    "<int:group_id>": "{group}",
    "<int:route_case_id>": "{route_case}",
    "<uuid:channel_id>": "{channel}",
}


def pages() -> Mapping[str, tuple[str, ...]]:
    """Every page that shows data, by the name of its path, with the templates of the addresses to ask for."""
    return {
        str(path.name): QUESTIONS.get(str(path.name)) or (_address(str(path.pattern)),)
        for path in urlpatterns
        if path.name not in WITHOUT_DATA
    }


def _address(pattern: str) -> str:
    """The template of the address of a path. Raises ValueError for a part that nothing here stands for."""
    for part, field in _PARTS.items():
        pattern = pattern.replace(part, field)
    if "<" in pattern:
        raise ValueError(f"Say in bench/console_pages.py what stands for a part of '{pattern}'.")
    return f"/{pattern}"


def subject_now() -> Subject:
    """Choose what the measured pages show: the newest change, the incident with most clients, and so on."""
    incident = Incident.objects.order_by("-nacked", "pk").values_list("public_id", flat=True).first()
    written = change_list(environment_key=ENVIRONMENT, wanted=ChangeFilter(kind=ChangeKind.RESOURCES)).filter(
        staged=None
    )[0]
    deciding = change_list(environment_key=ENVIRONMENT, wanted=ChangeFilter(kind=ChangeKind.ACCESS))[0]
    rollout = rollouts_of(environment_key=ENVIRONMENT, limit=1).rows[0].id
    changes = (str(written.public_id), str(deciding.public_id), changes_of_rollout(rollout)[0].change)
    proposed = change_sets_of(environment_key=ENVIRONMENT, limit=1).rows[0].id
    user = User.objects.order_by("pk").values_list("pk", flat=True)[0]
    group = Group.objects.order_by("pk").values_list("pk", flat=True)[0]
    epoch = environment_get(key=ENVIRONMENT).epoch
    channel = str(Channel.objects.order_by("pk").values_list("public_id", flat=True)[0])
    subjects = (*changes, rollout, proposed, str(incident), client_of(1), cluster_name(0))
    route_case = case_list(environment_key=ENVIRONMENT)[0].pk
    return Subject(ENVIRONMENT, epoch, *subjects, user, group, channel, route_case)


def addresses(subject: Subject) -> Iterator[tuple[str, str]]:
    """The addresses of all pages, each as (its entry in the table of pages, the address filled in with `subject`)."""
    given = asdict(subject)
    for templates in pages().values():
        for template in templates:
            yield template, template.format(**given)
