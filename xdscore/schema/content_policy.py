"""What an environment thinks of dangerous content: refuse, warn or allow, kind by kind (reliability threat 20).

`dangers` finds; `graded` gives each note the severity of the policy. Refuse is the default: whoever needs code in
proxies, their files, or destinations on their own machine or in the machinery of their cloud asks an operator of the
environment.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import Enum

from xdscore.findings import Finding, Severity
from xdscore.schema.codes import (
    COMMAND_UNKNOWN,
    EXTENSION_UNKNOWN,
    FIELD_UNKNOWN,
    LINK_LOCAL,
    LOCAL_FILE,
    LOCAL_PIPE,
    LOOPBACK,
    LUA,
    MODULE,
    OPAQUE,
    VARIABLE,
)


class Stance(Enum):
    """How an environment treats a resource with dangerous content of some kind."""

    REFUSE = "refuse"
    WARN = "warn"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class ContentPolicy:
    """How an environment treats each kind of dangerous content.

    lua, modules: code that a proxy runs: Lua, and Wasm or loaded libraries.
    files, pipes, variables: files, sockets and environment variables of the proxy's machine.
    loopback, link_local: addresses of that machine itself, and of what a cloud has beside each machine.
    unknown_fields: fields that the schema has not, which are left out; commands that formats have not, and resolvers of
        addresses that Envoy has not, which stay.
    opaque: the bytes of a message whose type the schema has not.
    """

    lua: Stance = Stance.REFUSE
    modules: Stance = Stance.REFUSE
    files: Stance = Stance.REFUSE
    pipes: Stance = Stance.REFUSE
    loopback: Stance = Stance.REFUSE
    link_local: Stance = Stance.REFUSE
    variables: Stance = Stance.REFUSE
    unknown_fields: Stance = Stance.REFUSE
    opaque: Stance = Stance.REFUSE


KINDS: tuple[str, ...] = tuple(each.name for each in fields(ContentPolicy))
"""The kinds of content, as policies spell them."""

DEFAULT_POLICY = ContentPolicy()
# For what was taken before, and is judged when it is stored again.
TAKES_UNKNOWN = ContentPolicy(unknown_fields=Stance.ALLOW, opaque=Stance.ALLOW)
# What `make run` starts with: a backend beside the proxy is the first thing that anybody tries. A metadata service is
# nobody's backend.
OPEN_POLICY = ContentPolicy(
    lua=Stance.WARN,
    modules=Stance.WARN,
    files=Stance.WARN,
    pipes=Stance.WARN,
    loopback=Stance.ALLOW,
    variables=Stance.WARN,
)
KIND_OF_CODE = {
    LUA.code: "lua",
    MODULE.code: "modules",
    LOCAL_FILE.code: "files",
    LOCAL_PIPE.code: "pipes",
    LOOPBACK.code: "loopback",
    LINK_LOCAL.code: "link_local",
    VARIABLE.code: "variables",
    FIELD_UNKNOWN.code: "unknown_fields",
    COMMAND_UNKNOWN.code: "unknown_fields",
    EXTENSION_UNKNOWN.code: "unknown_fields",
    OPAQUE.code: "opaque",
}
"""Which kind a danger is of, by its code."""
_SEVERITIES = {Stance.REFUSE: Severity.ERROR, Stance.WARN: Severity.WARNING}


def graded(findings: Iterable[Finding], policy: ContentPolicy) -> tuple[Finding, ...]:
    """The findings, with the severity that `policy` says for those about dangerous content; what the policy allows is
    left out. Applied to its own result, it changes nothing.
    """
    return tuple(_graded(findings, policy))


def _graded(findings: Iterable[Finding], policy: ContentPolicy) -> Iterable[Finding]:
    for finding in findings:
        kind = KIND_OF_CODE.get(finding.code)
        if kind is None:
            yield finding
            continue
        stance: Stance = getattr(policy, kind)
        if stance is not Stance.ALLOW:
            yield replace(finding, severity=_SEVERITIES[stance])


def policy_of(stances: dict[str, str]) -> ContentPolicy:
    """The policy with these stances, stored by kind of content; kinds without a stance are refused. Raises ValueError
    for an unknown stance.
    """
    return ContentPolicy(**{kind: Stance(stances[kind]) for kind in KINDS if kind in stances})


def stances_of(policy: ContentPolicy) -> dict[str, str]:
    """The stances of a policy by kind of content, as they are stored; the inverse of `policy_of`."""
    return {kind: getattr(policy, kind).value for kind in KINDS}
