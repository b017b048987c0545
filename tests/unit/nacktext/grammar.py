"""Texts in the grammar of each dialect, with their culprits: from clients.md section 4, not from the readers."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

LDS = "type.googleapis.com/envoy.config.listener.v3.Listener"
CDS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
EDS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
RDS = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"

# What names are made of: plain parts that start and end one another, and pieces of every grammar.
_PARTS = (
    *("a", "b", "ab", "a-b", "c1", "c10", "é", "\u2028", "name", "type", "resource"),
    *(", ", ": ", "; ", "\n", ";\n", "'", '"', "\\", "]", "[", "\x00", "\x7f", "0: "),
    *("; resource index 1: ", "; resource_errors index 0: ", "resource index 3: ", "INVALID_ARGUMENT: "),
    *('resource "a": ', ';\nresource "b": x', "top level errors: "),
    *("' validation error: ", "' unexpected error: ", " for type: LDS", "\nLDS response Listener 'a"),
    *("Error adding/updating cluster(s) ", " found among added/updated resources", "goo.gle/debugstr   \n"),
    *('\nname: "a"\n', "\n: Proto constraint validation failed (", " in route ", "...(truncated)"),
)

nasty_names = st.lists(st.sampled_from(_PARTS), min_size=1, max_size=4).map("".join)

# How one name holds another: as its beginning, and as the entry that a client would write about it.
_HOLDING = (
    *("VICTIM-1", "x, VICTIM: y", "VICTIM, VICTIM: y", "VICTIM: x", "x\nVICTIM: y", "x; VICTIM: y"),
    *(
        "x; resource index 0: VICTIM: INVALID_ARGUMENT: y",
        "x; resource index 1: VICTIM: Cannot parse xDS resource name",
    ),
    *("x; resource index 2: VICTIM: INVALID_ARGUMENT: y", "x; resource index 3: VICTIM: INVALID_ARGUMENT: y"),
    *("VICTIM; resource_errors index 0: VICTIM: y", 'x;\nresource "VICTIM": y', 'resource "VICTIM": y'),
    *("x\nLDS response Listener 'VICTIM' validation error: y", "VICTIM' validation error: y"),
    *("Unsupported resource name: VICTIM for type: LDS", "VICTIM for type: LDS", "VICTIM - VICTIM: y"),
    *("x; VICTIM: resource validation failed: y", "VICTIM: resource validation failed: y", "'VICTIM'"),
    *("VICTIM found among added/updated resources", 'x"\nname: "VICTIM"', "Error adding/updating cluster(s) VICTIM: y"),
)


@st.composite
def _held_names(draw: st.DrawFn) -> list[str]:
    """Some names, and others that hold them."""
    names = draw(st.lists(nasty_names, min_size=1, max_size=4))
    for held in draw(st.lists(st.sampled_from(_HOLDING), min_size=1, max_size=4)):
        names.insert(draw(st.integers(0, len(names))), held.replace("VICTIM", draw(st.sampled_from(names))))
    return names


@dataclass(frozen=True, slots=True)
class Case:
    """A NACK of a response with these names, in the words of one client, and the places it truly blames."""

    message: str
    names: tuple[str, ...]
    culprits: tuple[int, ...]

    @property
    def culprit_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.names[culprit] for culprit in self.culprits if self.names[culprit]))

    @property
    def may_be_cut(self) -> bool:
        """Whether this whole text may as well be a cut one about another name, which holds all of its end."""
        heads = ("Unsupported resource name: ", "duplicate name ")
        return any(
            name.startswith(self.message) or any(self.message.endswith(head + name) for head in heads)
            for name in self.names
        )


@st.composite
def responses(
    draw: st.DrawFn, *, unique: bool = True, unnamed: bool = False
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names of a response, and at least one place to blame, ascending."""
    name = st.one_of(nasty_names, st.just("")) if unnamed else nasty_names
    names = draw(st.one_of(st.lists(name, min_size=1, max_size=8, unique=unique), _held_names()))
    names = list(dict.fromkeys(names)) if unique else names
    culprits = draw(st.sets(st.integers(0, len(names) - 1), min_size=1))
    return tuple(names), tuple(sorted(culprits))


def _pick(draw: st.DrawFn, texts: Sequence[str], name: str) -> str:
    return draw(st.sampled_from(texts)).replace("NAME", name)


_CORE_TEXTS = (
    "INVALID_ARGUMENT: errors validating Cluster resource: [field:type error:unknown discovery type]",
    "INVALID_ARGUMENT: errors parsing EDS resource: [field:a error:x; field:endpoints[0].priority error:3 >= (1)]",
    'incorrect resource type "envoy.config.cluster.v3.Cluster" (should be "envoy.config.listener.v3.Listener")',
    "Cannot parse xDS resource name",
)
_CORE_NAMELESS_TEXTS = (
    "INVALID_ARGUMENT: Can't parse Listener resource.",
    'incorrect resource type "envoy.config.cluster.v3.Cluster" (should be "envoy.config.listener.v3.Listener")',
    "No resource present in Resource proto wrappe",
)


@st.composite
def core_cases(draw: st.DrawFn) -> Case:
    """C-core: index, raw name unless the resource has none or was not decoded; then errors about error entries."""
    names, culprits = draw(responses(unique=False, unnamed=True))
    entries = []
    for culprit in culprits:
        named = names[culprit] != "" and draw(st.booleans())
        said = f"{names[culprit]}: " if named else ""
        text = _pick(draw, _CORE_TEXTS if named else _CORE_NAMELESS_TEXTS, names[culprit])
        entries.append(f"resource index {culprit}: {said}{text}")
    for index, name in enumerate(draw(st.lists(st.sampled_from(("zz", "a: b", "a, b")), max_size=2))):
        entries.append(f"resource_errors index {index}: {name}: error_detail must be non-OK")
    return Case(f"xDS response validation errors: [{'; '.join(entries)}]", names, culprits)


@st.composite
def core_error_entry_cases(draw: st.DrawFn) -> Case:
    """C-core, of error entries only: nobody is to blame, whatever names of the response the entries say."""
    names, said = draw(responses(unique=False))
    texts = ("error_detail must be non-OK", "Cannot parse xDS resource name")
    entries = [
        f"resource_errors index {index}: {names[place]}: {draw(st.sampled_from(texts))}"
        for index, place in enumerate(said)
    ]
    entries.append(f"resource_errors index {len(said)}: resource_name unset")
    return Case(f"xDS response validation errors: [{'; '.join(entries)}]", names, ())


_NODE_TEXTS = (
    "Listener message validation failed: [api_listener.api_listener: unexpected route_specifier undefined]",
    'incorrect resource type "undefined" (should be "type.googleapis.com/envoy.config.cluster.v3.Cluster")',
    "invalid wire type 7 at offset 4",
)


@st.composite
def node_cases(draw: st.DrawFn) -> Case:
    """gRPC-Node: index and text."""
    names, culprits = draw(responses(unique=False, unnamed=True))
    entries = [f"resource index {culprit}: {_pick(draw, _NODE_TEXTS, '')}" for culprit in culprits]
    return Case(f"xDS response validation errors: [{'; '.join(entries)}]", names, culprits)


_GO_TEXTS = (
    'unsupported cluster type (STATIC, <nil>) in response: name:"c1" type:STATIC',
    'no RouteSpecifier: http_filters:{name:"router"  typed_config:{}}',
    "retry_policy.num_retries = 0; must be >= 1",
)


def go_quoted(name: str) -> str:
    """`name` as Go's %q writes it."""
    letters = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "".join(
        letters.get(character) or (character if character.isprintable() else _go_escape(ord(character)))
        for character in name
    )


def _go_escape(point: int) -> str:
    return f"\\x{point:02x}" if point < 0x80 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


@st.composite
def go_cases(draw: st.DrawFn) -> Case:
    """gRPC-Go: quoted names in random order."""
    names, culprits = draw(responses())
    shuffled = draw(st.permutations(culprits))
    entries = [f'resource "{go_quoted(names[culprit])}": {_pick(draw, _GO_TEXTS, "")}' for culprit in shuffled]
    return Case('error parsing "ClusterResource" response: ' + ";\n".join(entries), names, tuple(shuffled))


@st.composite
def java_cases(draw: st.DrawFn) -> Case:
    """gRPC-Java: a line for each; texts with line ends."""
    names, culprits = draw(responses(unnamed=True))
    lines = []
    for culprit in culprits:
        name = names[culprit]
        lines.append(
            f"LDS response Resource index {culprit} - can't decode Listener: Protocol message\nwas cut"
            if name == ""
            else draw(
                st.sampled_from(
                    (
                        f"LDS response Listener '{name}' validation error: HttpConnectionManager has\nno route_config",
                        f"LDS response '{name}' unexpected error: AssertionError: something bad happened",
                        f"Unsupported resource name: {name} for type: LDS",
                    )
                )
            )
        )
    return Case("\n".join(lines), names, culprits)


_ENVOY_TEXTS = (
    "malformed IP address: not-an-ip. Consider setting resolver_name or cluster type to 'STRICT_DNS', or 'LOGICAL_DNS'",
    "Didn't find a registered implementation for 'acme.a' with type URL: 'acme.A'",
    "cluster manager: cluster provided LB specified but cluster 'NAME' did not provide one. Check documentation.",
    "duplicate cluster NAME found",
    'goo.gle/debugonly    \nstat_prefix: ""\nrds {\n  name: "r"\n}\n: Proto constraint validation failed (X: y)',
    "Field 'weight' is missing in: goo.gle/debugstr   \nname: \"c1\"\n",
)


@st.composite
def envoy_list_cases(draw: st.DrawFn, header: str, separator: str, end: str) -> Case:
    """Envoy's lists: raw names in order, texts that repeat them, dumps inside."""
    names, culprits = draw(responses())
    # A text may end with a line end: then a name that starts with one (none can be published) cannot be told apart.
    assume(separator != "\n" or not any(name.startswith("\n") for name in names))
    entries = [f"{names[culprit]}: {_pick(draw, _ENVOY_TEXTS, names[culprit])}" for culprit in culprits]
    return Case(header + separator.join(entries) + end, names, culprits)


_RUST_TEXTS = (
    "unsupported load balancing policy: 5",
    "route configuration 'NAME' has no virtual hosts",
    "virtual host 'a' has no domains",
)


@st.composite
def rust_cases(draw: st.DrawFn) -> Case:
    """gRPC-Rust: raw names in order, no header."""
    names, culprits = draw(responses())
    entries = [
        f"{names[culprit]}: resource validation failed: {_pick(draw, _RUST_TEXTS, names[culprit])}"
        for culprit in culprits
    ]
    return Case("; ".join(entries), names, culprits)


@st.composite
def on_demand_cases(draw: st.DrawFn) -> Case:
    """Envoy: a cluster that was asked for on demand."""
    names, culprits = draw(responses())
    name = names[culprits[0]]
    text = _pick(draw, _ENVOY_TEXTS, name)
    return Case(f"Error adding/updating cluster {name} - {name}: {text}", names, (culprits[0],))


cluster_lists = envoy_list_cases("Error adding/updating cluster(s) ", ", ", "")
listener_lists = envoy_list_cases("Error adding/updating listener(s) ", "\n", "\n")


def proto_quoted(text: str) -> str:
    """`text` as protobuf's text format writes it between quotes: non-ASCII as octal bytes."""
    plain = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("'"): "\\'"}
    return "".join(
        plain.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in text.encode("utf-8")
    )


@st.composite
def broken_rule_cases(draw: st.DrawFn) -> Case:
    """Envoy's dump of one resource whose field breaks a rule."""
    names, culprits = draw(responses())
    culprit = culprits[0]
    message = (
        f'goo.gle/debugstr   \nname: "{proto_quoted(names[culprit])}"\ntype: STATIC\nload_assignment {{\n'
        f'  cluster_name: "{proto_quoted(names[-1])}"\n}}\n'
        ": Proto constraint validation failed (ClusterValidationError.ConnectTimeout: value must be greater than 0s)"
    )
    return Case(message, names, (culprit,))


@st.composite
def duplicate_cases(draw: st.DrawFn) -> Case:
    """Envoy's delta complaint about a name that occurs twice."""
    names, culprits = draw(responses())
    name = names[culprits[0]]
    end = draw(st.sampled_from(("among added/updated resources", "in the union of added+removed resources")))
    return Case(f"duplicate name {name} found {end}", names, (culprits[0],))
