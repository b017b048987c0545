"""The OpenAPI schema's vocabulary: how views say what they take and answer, so that the schema says all of it.

Only describes. What is described is done by the views, and tests hold their answers against the schema.
"""

from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, PolymorphicProxySerializer
from rest_framework import serializers

from controlplane.api.pages import DEFAULT_ITEMS, MAX_ITEMS
from controlplane.api.problems import CONTENT_TYPE, reason_of
from controlplane.api.shapes.common import DryRunOut, ProblemOut
from controlplane.api.tailing import LONGEST_S
from controlplane.api.waiting import Wanted
from controlplane.catalog.choices import ChangeKind
from controlplane.changesets.values import SetState
from controlplane.clients.bootstraps import NAMED_FILES
from controlplane.history.values import What
from controlplane.incidents.values import IncidentCause, IncidentState
from controlplane.rollouts.values import ClientState, RolloutState
from controlplane.status.values import Status
from controlplane.tail.values import Kind
from xdscore.holdings import HoldingState
from xdscore.server_features import CRITERIA, DEFAULT_FEATURES, BootstrapFeature
from xdscore.sides import Side

YAML: Final = "application/yaml"
JSON: Final = "application/json"
BOTH: Final = (JSON, YAML)

MANIFEST: Final[dict[str, Any]] = {
    "type": "object",
    "description": (
        'A protobuf JSON Any of an xDS resource: `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", '
        '"name": "pay", …}`, or the envoy.service.discovery.v3.Resource wrapper.'
    ),
    "properties": {"@type": {"type": "string"}},
    "required": ["@type"],
    "additionalProperties": True,
}

MANIFEST_LIST: Final[dict[str, Any]] = {"type": "array", "items": MANIFEST}
DOCUMENT: Final[dict[str, Any]] = {
    "anyOf": [MANIFEST, {"$ref": "#/components/schemas/ResourceRowOut"}],
    "description": "The manifest; with `status=true` the resource's line of the list, with the manifest in it.",
}
PLAIN: Final[dict[str, Any]] = {
    "anyOf": [MANIFEST, MANIFEST_LIST],
    "description": "Plain manifests. As YAML, in several documents too.",
}
ANYTHING: Final[dict[str, Any]] = {"description": "Plain manifests; what is wrong with them is the answer."}
TREE: Final[dict[str, Any]] = {"type": "object", "additionalProperties": True}


def _query(name: str, kind: Any, text: str, **more: Any) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=text, **more)


def _header(name: str, text: str) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.HEADER, description=text)


_LIMIT = _query(
    "limit", {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS, "default": DEFAULT_ITEMS}, "How many at most."
)
PAGE: Final = [_LIMIT, _query("offset", {"type": "integer", "minimum": 0, "default": 0}, "How many to leave out.")]
CURSOR: Final = [_LIMIT, _query("after", OpenApiTypes.STR, "Where the page begins; taken from `next`.")]
MESSAGE: Final = _query("message", OpenApiTypes.STR, "Why; also as the header X-Parley-Message.")
ACCEPT_LOSS: Final = _query(
    "accept_loss",
    {"type": "integer", "minimum": 0, "default": 0},
    "Of how many connected clients it is accepted that they lose something: at least `loss.clients` of the refusal.",
)
ACCEPT_CASES: Final = _query(
    "accept_cases",
    {"type": "integer", "minimum": 0, "default": 0},
    "How many blocking route cases it is accepted to break: at least `broken` of the refusal. Needs the role editor in "
    "the whole environment; the audit log has it.",
)
BREAK_GLASS: Final = _query(
    "break_glass",
    OpenApiTypes.STR,
    "Why to write although the environment is frozen: needs the role in `review.break_glass_role`, and everybody is "
    "told.",
)
ROLLOUT_NOW: Final = (
    _query(
        "rollout",
        {"type": "string", "enum": ["now"]},
        "`now`: to every client at once, past the steps of the environment's rollouts. Needs the role operator and a "
        "`reason`; skips no check.",
    ),
    _query("reason", OpenApiTypes.STR, "Why, with `rollout=now`; kept in the audit log."),
)
DRY_RUN: Final = _query("dry_run", OpenApiTypes.BOOL, "Say what clients would lose, and leave nothing behind.")
GUARDED: Final = [DRY_RUN, ACCEPT_CASES, ACCEPT_LOSS, MESSAGE]
IF_MATCH: Final = _header("If-Match", 'Only if it is at this revision: `"r17"`, several of them, or `*`.')
PRECONDITIONS: Final = [
    IF_MATCH,
    _header("If-None-Match", "`*`: only if it does not exist."),
]
OWNER: Final = _query("owner", OpenApiTypes.STR, "Whose it is from now on; without it the owner stays.")
LABEL_HELP: Final = "Only those with such labels: `team=pay`, `team!=pay`, `team`, `!team`, or several with commas."
SPAN: Final = (
    _query(
        "since",
        OpenApiTypes.STR,
        "Only what happened then or later: a time such as `2026-07-01T12:00:00Z`, or an age such as `24h`.",
    ),
    _query("until", OpenApiTypes.STR, "Only what happened then or earlier: a time, or an age."),
)
RESOURCE_FILTERS: Final = [
    _query("type", OpenApiTypes.STR, "A type's word or type URL."),
    _query("owner", OpenApiTypes.STR, "Exactly this owner; empty: none."),
    _query("name", OpenApiTypes.STR, "A part of the name."),
    _query("status", {"type": "string", "enum": [each.value for each in Status]}, "Only those that stand so."),
    _query("label", OpenApiTypes.STR, LABEL_HELP),
    _query("author", OpenApiTypes.STR, "Only those whose newest revision is by this author."),
    _query("findings", {"type": "string", "enum": ["with", "without"]}, "Only those with findings, or without."),
    *SPAN,
    _query(
        "manifests", OpenApiTypes.BOOL, "With each resource's manifest. As YAML the answer is a file that apply takes."
    ),
]
WITH_STATUS: Final = _query(
    "status",
    OpenApiTypes.BOOL,
    "Answer its line of the list, which says how it stands, with the manifest in it.",
    default=False,
)
BOOTSTRAP_PARAMETERS: Final = [
    _query("environment", OpenApiTypes.STR, "The environment the client belongs to.", default="default"),
    _query("node_id", OpenApiTypes.STR, "The client's name.", required=True),
    _query(
        "variant",
        {"type": "string", "enum": ["sotw", "delta"], "default": "sotw"},
        "Envoy: which form of the protocol.",
    ),
    _query("transport", {"type": "string", "enum": ["grpc", "rest"]}, "Envoy: `rest` polls; 409 where it cannot."),
    _query(
        "server_features",
        {"type": "array", "items": {"type": "string", "enum": [each.value for each in BootstrapFeature]}},
        "gRPC: server features of the file beside those it always has ("
        + ", ".join(f"`{each.value}`" for each in BootstrapFeature if each in DEFAULT_FEATURES)
        + "); repeated, or separated by commas. "
        + " ".join(f"`{feature.value}`: {criterion}" for feature, criterion in CRITERIA.items()),
    ),
    _query(
        "allowed_grpc_services",
        {"type": "array", "items": {"type": "string", "minLength": 1}},
        "gRPC, of a draft (gRFC A102): the target URIs of side-channel services that resources may name, such as "
        "`dns:///ratelimit.example:443`; repeated. Each is called over TLS and known by the authorities that the "
        "client's machine trusts. C-core 1.85 reads it with `GRPC_EXPERIMENTAL_XDS_EXT_PROC_ON_CLIENT=true` only.",
    ),
    *(
        _query(
            name,
            {"type": "string", "minLength": 1, "maxLength": 1_024, "default": getattr(NAMED_FILES, name)},
            f"Where the client has {what}, absolute or relative. Refused where its bootstrap names no such file.",
        )
        for name, what in (
            ("certificate_file", "its certificate"),
            ("private_key_file", "the key of its certificate"),
            ("ca_certificate_file", "the authorities that sign the server's certificate"),
        )
    ),
]
_ENVIRONMENT: Final = _query("environment", OpenApiTypes.STR, "Only of this environment.")
CLIENT_FILTERS: Final = [
    _ENVIRONMENT,
    _query("node_id", OpenApiTypes.STR, "Exactly this node id."),
    _query("identity", OpenApiTypes.STR, "Exactly this identity, as it was verified."),
    _query("connected", OpenApiTypes.BOOL, "Only those with an open stream."),
    _query("label", OpenApiTypes.STR, LABEL_HELP),
]
_HOLDING_STATES: Final = _query(
    "state",
    {"type": "array", "items": {"type": "string", "enum": [each.value for each in HoldingState]}},
    "Only in these states; repeated, or separated by commas.",
)
HOLDING_FILTERS: Final = [
    _query(
        "type",
        {"type": "array", "items": {"type": "string"}},
        "Only of these types, each by its word or type URL; repeated, or separated by commas.",
    ),
    _HOLDING_STATES,
    _query("name", OpenApiTypes.STR, "Only names that contain this, in any case."),
    _query(
        "at",
        OpenApiTypes.DATETIME,
        "What it had at this time, at most as long ago as the limit `holding_history_h` says.",
    ),
]
HOLDER_FILTERS: Final = [
    _HOLDING_STATES,
    _query(
        "revision",
        {"type": "string", "pattern": r"^r?[0-9]{1,18}$"},
        "Only clients that have, or are to have, this revision: `12` or `r12`.",
    ),
]
INCIDENT_FILTERS: Final = (
    _ENVIRONMENT,
    _query("state", {"type": "string", "enum": [each.value for each in IncidentState]}, "Only in this state."),
    _query(
        "cause",
        {"type": "string", "enum": [each.value for each in IncidentCause]},
        "Only what clients refuse, or lost.",
    ),
    _query("type", OpenApiTypes.STR, "Only about this type: its word or type URL."),
    _query("name", OpenApiTypes.STR, "Only about resources whose name contains this."),
    _query("resource", OpenApiTypes.STR, "Only about this resource: `TYPE/NAME`."),
    _query("client", OpenApiTypes.STR, "Only what this client refuses, or lost: its id or node id."),
    _query("author", OpenApiTypes.STR, "Only where the suspect change is by this author."),
    _query("assignee", OpenApiTypes.STR, "Only what `me`, `person:LOGIN`, `team:OWNER` or `nobody` looks after."),
    *SPAN,
)
ROLLOUT_FILTERS: Final = [
    _query(
        "state",
        {"type": "array", "items": {"type": "string", "enum": [each.value for each in RolloutState]}},
        "Only in these states; repeated, or separated by commas.",
    ),
]
CHANGE_SET_FILTERS: Final = [
    _query(
        "state",
        {"type": "array", "items": {"type": "string", "enum": [each.value for each in SetState]}},
        "Only those that stand so; repeated, or separated by commas.",
    ),
]
CHANGE_SET_PARAMETERS: Final = [
    _query("manifests", OpenApiTypes.BOOL, "With `resources` and `delete`, as an edit takes them."),
    _query("text", OpenApiTypes.BOOL, "Each resource of `diff` as a unified difference, too."),
]
ROLLOUT_CLIENT_FILTERS: Final = [
    _query(
        "side",
        {"type": "string", "enum": [each.value for each in Side], "default": Side.CANDIDATE.value},
        "Those on this side.",
    ),
    _query(
        "state",
        {"type": "string", "enum": [each.value for each in ClientState]},
        "Only those that said this, as a whole.",
    ),
]
ACCESS_HISTORY_FILTERS: Final = [
    _query("subject", {"type": "string", "enum": ["rule", "group"]}, "Only of rules, or of client groups."),
    _query("id", {"type": "integer", "minimum": 1}, "Only of the one with this id."),
]
AUDIT_FILTERS: Final = [
    _ENVIRONMENT,
    _query("actor", OpenApiTypes.STR, "Exactly this actor, by the name of then."),
    _query("actor_id", OpenApiTypes.STR, "Exactly this actor, by id, e.g. `token:34`."),
    _query("verb", OpenApiTypes.STR, "Exactly this verb, e.g. `change.saved`."),
    _query("request_id", OpenApiTypes.STR, "Exactly this request."),
    *SPAN,
]
CHANGE_FILTERS: Final = [
    _ENVIRONMENT,
    _query("kind", {"type": "string", "enum": [each.value for each in ChangeKind]}, "Only changes of this kind."),
    _query("author", OpenApiTypes.STR, "Exactly this author, by the name of then."),
    _query("owner", OpenApiTypes.STR, "Only what was written for this owner."),
    _query("text", OpenApiTypes.STR, "A part of the message, or of the name of a resource that was written."),
    _query("resource", OpenApiTypes.STR, "Only what wrote this resource: `TYPE/NAME`, or a name of any type."),
    _query("findings", {"type": "string", "enum": ["with", "without"]}, "Only those with findings, or without."),
    *SPAN,
]
DIFF_PARAMETERS: Final = [
    _query("from", OpenApiTypes.STR, "An epoch, or `live`: what is written now.", required=True),
    _query("to", OpenApiTypes.STR, "An epoch, or `live`.", default="live"),
    _query("text", OpenApiTypes.BOOL, "Each resource as a unified difference, too."),
]
EXPLAIN_PARAMETERS: Final = [
    _query("environment", OpenApiTypes.STR, "The environment the client belongs to.", default="default"),
    _query("client", OpenApiTypes.STR, "A client's id or node id; without one: clients in no group."),
    _query("type", OpenApiTypes.STR, "A type's word or type URL.", required=True),
    _query("name", OpenApiTypes.STR, "The resource's name.", required=True),
    _query(
        "at",
        {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "string", "format": "date-time"}]},
        "The epoch of an earlier snapshot, or a time: then also by what the client had, as far as that is kept "
        "(the limit `holding_history_h`).",
    ),
]
TAIL_FILTERS: Final = [
    _query("client", OpenApiTypes.STR, "Only of this client: its id or node id."),
    _query("type", OpenApiTypes.STR, "Only about this type: its word or type URL."),
    _query("name", OpenApiTypes.STR, "Only about this name, of any type or of `type`."),
    _query(
        "kind",
        {"type": "array", "items": {"type": "string", "enum": [each.value for each in Kind]}},
        "Only these kinds of events; repeated, or separated by commas.",
    ),
    _query(
        "seconds",
        {"type": "integer", "minimum": 1, "maximum": LONGEST_S, "default": LONGEST_S},
        "After how long the tail ends at the latest.",
    ),
]
SERIES_PARAMETERS: Final = [
    _query("what", {"type": "string", "enum": [each.value for each in What], "default": "clients"}, "What to count."),
    _query(
        "by",
        {"type": "string", "enum": ["state", "type", "kind", "code"]},
        "What tells series apart: of clients `state`; of NACKs `type` or `kind`, the family and version of the client; "
        "of errors `type` or `code`. Without it, the first of these.",
    ),
    _query("from", OpenApiTypes.STR, "A time such as `2026-07-01T12:00:00Z`, or an age such as `24h`.", default="3h"),
    _query("until", OpenApiTypes.STR, "The same of the end; without it: now."),
    _query(
        "step",
        OpenApiTypes.STR,
        "The length of a step, such as `60s`, `10m` or `1h`: a multiple of a minute, or of ten where it is long ago. "
        "At most 1,500 steps; without it as many as a picture can show.",
    ),
]
SNAPSHOT_FILTERS: Final = [
    _query("type", OpenApiTypes.STR, "A type's word or type URL."),
    _query("manifests", OpenApiTypes.BOOL, "With each resource's manifest."),
]
WAIT: Final = [
    _query(
        "wait",
        OpenApiTypes.STR,
        "How long to wait at most, e.g. `20s`; at most 60s. Ends as soon as the state is final.",
    ),
    _query(
        "for",
        {"type": "string", "enum": [each.value for each in Wanted], "default": Wanted.PUBLISHED.value},
        "What to wait for: that it is built; that every client has spoken; or the first client that refuses it or the "
        "last that speaks (`decided`).",
    ),
]
STRICT: Final = _query("strict", OpenApiTypes.BOOL, "Refuse what is not in its canonical form.")
CASE_FILTERS: Final = [
    _query("state", {"type": "string", "enum": ["holds", "fails"]}, "Only those that hold, or that fail."),
]
CASES_DRY_RUN: Final = _query("dry_run", OpenApiTypes.BOOL, "Say what would become of each case, and keep none.")
CASES_IMPORT: Final = [
    CASES_DRY_RUN,
    _query("listener", OpenApiTypes.STR, "The listener that the requests come to; without it the one with their port."),
    _query("blocking", {"type": "boolean", "default": True}, "Whether a change that breaks one of them is refused."),
]
ROUTER_CHECK: Final[dict[str, Any]] = {
    "description": "A file of Envoy's router_check_tool: its tests as a list, or under `tests`.",
    "oneOf": [{"type": "array", "items": {"type": "object"}}, {"type": "object"}],
}
APPLY_PARAMETERS: Final = [
    _query("dry_run", OpenApiTypes.BOOL, "Say what would be done, by the same code, and leave nothing behind."),
    _query("text", OpenApiTypes.BOOL, "With `dry_run`: each edit as a unified difference, too."),
    MESSAGE,
    _query("owner", OpenApiTypes.STR, "For plain manifests: whose they are."),
    _query("prune", OpenApiTypes.BOOL, "For plain manifests: delete what else this owner has."),
    _query("strict", OpenApiTypes.BOOL, "Refuse what is not in its canonical form, and references to nothing."),
    ACCEPT_CASES,
    ACCEPT_LOSS,
    BREAK_GLASS,
    *ROLLOUT_NOW,
]


def page_of(item: type[serializers.Serializer[Any]], *, cursor: bool = False) -> serializers.Serializer[Any]:
    """The serializer of one part of a list of these items. `cursor`: the list is read by cursor, and so has no
    count.
    """
    name = f"{item.__name__.removesuffix('Out')}Page"
    link = serializers.CharField(allow_null=True)
    fields: dict[str, Any] = {"next": link, "results": item(many=True)}
    if not cursor:
        fields = {"count": serializers.IntegerField(), "previous": serializers.CharField(allow_null=True), **fields}
    page = type(name, (serializers.Serializer,), fields)
    return page()  # type: ignore[no-any-return]  # made by type()


def described(
    status: int,
    shape: Any,
    *problems: int,
    media: tuple[str, ...] = (JSON,),
    unchanged: type[serializers.Serializer[Any]] | None = None,
    unmodified: bool = False,
    dry_run: bool = False,
    yaml: dict[str, Any] | None = None,
) -> dict[Any, Any]:
    """The answers of an operation, for the OpenAPI schema: `status` with `shape`, and a problem document for each
    status in `problems`.

    `unchanged`: the shape of a 200 that says that nothing had to be done.
    `unmodified`: the operation may answer 304.
    `dry_run`: the operation takes the parameter `dry_run`.
    `yaml`: the shape of the answer as YAML, where that is another.
    """
    answers: dict[Any, Any] = {}
    for each in media:
        answers[status, each] = shape if shape is not None else OpenApiResponse(description="No content.")
    if shape is None:
        answers = {status: OpenApiResponse(description="No content.")}
    if unchanged is not None:
        answers[200, JSON] = unchanged
    if dry_run:
        answers[200, JSON] = DryRunOut if status != 200 else _either(shape, DryRunOut)
    if yaml is not None:
        answers[status, YAML] = yaml
    if unmodified:
        answers[304] = OpenApiResponse(description="What If-None-Match names is current.")
    if 404 in problems:  # where somebody may see nothing of an environment, somebody else may see some of it only
        problems = (*problems, 403)
    for problem in sorted({400, 429, 500, *problems}):  # any may be malformed, one too many, or fail
        answers[problem, CONTENT_TYPE] = OpenApiResponse(ProblemOut, description=reason_of(problem))
    return answers


def _either(*shapes: type[serializers.Serializer[Any]]) -> PolymorphicProxySerializer:
    """The schema of an object that has one of these shapes."""
    name = "Or".join(shape.__name__.removesuffix("Out") for shape in shapes)
    return PolymorphicProxySerializer(component_name=name, serializers=list(shapes), resource_type_field_name=None)


def body_of_shape(shape: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    """The schema of a request body of this shape, as JSON or YAML."""
    return {JSON: shape, YAML: shape}


def manifests_body(shape: type[serializers.Serializer[Any]], plain: dict[str, Any]) -> dict[str, Any]:
    """The schema of a request body that is either of this shape or `plain` manifests, which `schema_hooks`
    adds.
    """
    return {JSON: shape, YAML: plain}


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # untyped library
    """Tells drf-spectacular, which makes the OpenAPI schema, how API tokens are sent."""

    target_class = "controlplane.api.authentication.BearerToken"
    name = "token"

    def get_security_definition(self, _auto_schema: AutoSchema) -> dict[str, str]:
        """The OpenAPI security scheme of API tokens."""
        return {"type": "http", "scheme": "bearer"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # untyped library
    """Tells drf-spectacular, which makes the OpenAPI schema, how the console's session is sent."""

    target_class = "controlplane.api.authentication.SignedIn"
    name = "session"

    def get_security_definition(self, _auto_schema: AutoSchema) -> dict[str, str]:
        """The OpenAPI security scheme of the console's session."""
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
