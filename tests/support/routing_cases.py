"""Generated listeners and requests for the oracle: small words, so that matchers often meet what they look for."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from tests.support.ports import free_ports
from xdscore.routing.values import Request

Json = dict[str, Any]
ANY = "type.googleapis.com/"
HTTP = ANY + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = {"name": "router", "typed_config": {"@type": ANY + "envoy.extensions.filters.http.router.v3.Router"}}
CLUSTERS = ("red", "green", "blue")
_SEGMENTS = ("a", "b", "A", "api", "api2", "v1", "a.b", "")
_VALUES = ("1", "5", "-3", "12", "on", "On", "alpha", "alphabet", "beta", "xalpha", "a,b", "")
_NAMES = ("x-a", "x-b", "X-Num")
_QUERY = ("q", "w")
_HOSTS = ("shop.example", "www.shop.example", "a.b.shop.example", "shop.other", "SHOP.example", "example", "[::1]")
_DOMAINS = (
    *("shop.example", "*.shop.example", "*.b.shop.example", "*.example", "shop.*", "www.shop.*", "*shop.example"),
    *("shop.example:8080", "Shop.Other", "*", "*:8080", "www.*", "[::1]", "[::1]:8080", "*e"),
)
_REGEXES = ("alpha.*", "[0-9]+", "(?i)on", "a|b", "", ".*a", "al.ha", "-?\\d+")
_PATH_REGEXES = ("/a/.*", "/(api|v1)/?[a-z]*", "/a", "(?i)/A.*", ".*b", "/[^/]+/b")
_NOT_FOUND = ("NOT_FOUND", "SERVICE_UNAVAILABLE", "INTERNAL_SERVER_ERROR")
_TEXTS = ("exact", "prefix", "suffix", "contains", "safe_regex")


class Generator:
    """Generated configurations and requests; equal seeds give equal ones."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - chance for tests

    def listener(self, name: str, port: int) -> Json:
        """A listener with a connection manager and its routes inside."""
        chance = self._chance
        manager: Json = {
            "@type": HTTP,
            "stat_prefix": "http",
            "route_config": self._configuration(),
            "http_filters": [ROUTER],
            "upgrade_configs": [{"upgrade_type": "CONNECT"}],
            "normalize_path": chance(0.3),
            "merge_slashes": chance(0.3),
            "strip_trailing_host_dot": chance(0.3),
            "use_remote_address": chance(0.3),
            "path_with_escaped_slashes_action": self._one(
                ["KEEP_UNCHANGED", "REJECT_REQUEST", "UNESCAPE_AND_REDIRECT", "UNESCAPE_AND_FORWARD"]
            ),
        }
        if chance(0.4):
            manager[self._one(["strip_any_host_port", "strip_matching_host_port"])] = True
        if chance(0.1):
            manager["scheme_header_transformation"] = {"scheme_to_overwrite": "https"}
        return {
            "name": name,
            "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
            "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
        }

    def request(self, listener: Json) -> Request:
        """A request for a listener; every second one aims at one of its routes, and may still miss."""
        port = listener["address"]["socket_address"]["port_value"]
        host = self._one(_HOSTS)
        if self._chance(0.4):
            host += self._one([":8080", f":{port}", ":80", ":80", "."])
        method = self._weighted({"GET": 12, "POST": 3, "DELETE": 1, "CONNECT": 1})
        headers: dict[str, str] = {}
        for name in _NAMES:
            if self._chance(0.5):
                headers[name] = self._one(_VALUES)
        if self._chance(0.15):
            kinds = ["application/grpc", "application/grpc+proto", "application/grpc-web", "text/plain"]
            headers["content-type"] = self._one(kinds)
        if self._chance(0.1):
            headers["x-forwarded-proto"] = self._one(["https", "http"])
        if self._chance(0.2):
            headers["x-cluster"] = self._one([*CLUSTERS, "nowhere"])
        if self._chance(0.2):
            headers["x-host"] = self._one(_HOSTS)
        if method == "CONNECT":
            return Request(authority=f"{self._one(_HOSTS)}:8080", method=method, headers=headers)
        path = self._path()
        if self._chance(0.5):
            path, headers = self._aimed(listener, path, headers)
        return Request(authority=host, path=path, method=method, headers=headers)

    def _aimed(self, listener: Json, path: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
        """A path, and headers, as one of the listener's routes wants them."""
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        host = self._pick(manager["route_config"]["virtual_hosts"])
        match = self._pick(host["routes"])["match"]
        given = [match[kind] for kind in ("prefix", "path", "path_separated_prefix") if kind in match]
        query = path.partition("?")[2]
        if given:
            path = (given[0] or "/") + self._one(["", "", "/b", "x"])
        for each in match.get("query_parameters", ()):
            wanted = [value for kind, value in each.get("string_match", {}).items() if kind in {"exact", "prefix"}]
            first = f"{each['name']}={self._one([*wanted, *wanted, self._one(_VALUES)])}"
            query = "&".join([first, *([query] if query else []), f"{each['name']}=last"])
        wants = {each["name"]: each for each in match.get("headers", ()) if not each["name"].startswith(":")}
        for name in wants.keys() - {"host"}:
            matcher = wants[name] | wants[name].get("string_match", {})
            texts = [matcher[kind] for kind in ("exact", "prefix", "exact_match", "prefix_match") if kind in matcher]
            if self._chance(0.3):
                headers.pop(name, None)
            else:
                headers[name] = self._one([*texts, *texts, self._one(_VALUES)])
        return path.partition("?")[0] + (f"?{query}" if query else ""), headers

    def _path(self) -> str:
        path = "/" + "/".join(self._one(_SEGMENTS) for _ in range(self.random.randint(0, 3)))
        if self._chance(0.1):
            path += self._one(["/../b", "/./a", "//b", "%2Fb", "%5cb", "%20", "%41", "/.."])
        if self._chance(0.1):
            path += ";v=1"
        if self._chance(0.7):
            parameters = [f"{self._one(_QUERY)}={self._one(_VALUES)}" for _ in range(self.random.randint(1, 4))]
            path += "?" + "&".join([*parameters, *(["w"] if self._chance(0.1) else [])])
        return path

    def _configuration(self) -> Json:
        domains = self.random.sample(_DOMAINS, k=self.random.randint(2, len(_DOMAINS)))
        if "*" not in domains and self._chance(0.8):
            domains.append("*")
        hosts: list[Json] = []
        while domains:
            size = self.random.randint(1, 4)
            taken, domains = domains[:size], domains[size:]
            hosts.append(self._host(f"host-{len(hosts)}", taken))
        found: Json = {"name": "inline", "virtual_hosts": hosts, "validate_clusters": False}
        for field, often in (("ignore_port_in_host_matching", 0.3), ("ignore_path_parameters_in_path_matching", 0.3)):
            found[field] = self._chance(often)
        if self._chance(0.1):
            found["vhost_header"] = "x-host"
        return found

    def _host(self, name: str, domains: list[str]) -> Json:
        routes = [self._route(index, self._match()) for index in range(self.random.randint(1, 8))]
        if self._chance(0.8):
            routes.append(self._route(len(routes), {"prefix": "/"}))
        found: Json = {
            "name": name,
            "domains": domains,
            "routes": routes,
            **saying("x-vhost", name),
        }
        if self._chance(0.03):
            found["require_tls"] = self._one(["ALL", "EXTERNAL_ONLY"])
        return found

    def _route(self, index: int, match: Json) -> Json:
        route: Json = {"match": match, **saying("x-route", str(index))}
        if "connect_matcher" in match:
            return route | {"direct_response": {"status": 418}}
        kind = self._weighted({"direct_response": 3, "redirect": 2, "route": 4})
        make: dict[str, Callable[[], Json]] = {
            "direct_response": lambda: {"status": self._one([200, 418, 503])},
            "redirect": self._redirect,
            "route": self._action,
        }
        return route | {kind: make[kind]()}

    def _redirect(self) -> Json:
        found: Json = {"response_code": self._one(["MOVED_PERMANENTLY", "FOUND", "SEE_OTHER", "TEMPORARY_REDIRECT"])}
        if self._chance(0.4):
            found |= self._one([{"https_redirect": True}, {"scheme_redirect": "https"}, {"scheme_redirect": "http"}])
        if self._chance(0.3):
            found["host_redirect"] = "new.example"
        if self._chance(0.2):
            found["port_redirect"] = 8443
        regex = {"pattern": {"regex": "/(a|api)"}, "substitution": "/x\\1\\0"}
        paths = [{"path_redirect": "/new"}, {"path_redirect": "/new?z=1"}, {"prefix_rewrite": "/p"}]
        if self._chance(0.6):
            found |= self._one([*paths, {"regex_rewrite": regex}])
        found["strip_query"] = self._chance(0.3)
        return found

    def _action(self) -> Json:
        return self._pick(
            [
                {"cluster": self._one(CLUSTERS)},
                {
                    "cluster": "missing",
                    "cluster_not_found_response_code": self._one(["NOT_FOUND", "SERVICE_UNAVAILABLE"]),
                },
                {"cluster_header": "x-cluster"},
                {"weighted_clusters": {"clusters": [{"name": "red", "weight": 100}, {"name": "blue", "weight": 0}]}},
                {"weighted_clusters": {"clusters": [{"name": each, "weight": 30} for each in CLUSTERS]}},
            ]
        )

    def _match(self) -> Json:
        paths: list[Json] = [
            {"prefix": self._one(["/", "", "/a", "/api", "/api/", "/A/b", "/v1"])},
            {"path": self._one(["/", "/a", "/a/b", "/API", "/api/v1", "/a;v=1"])},
            {"path_separated_prefix": self._one(["/a", "/api", "/A", "/api/v1"])},
            {"safe_regex": {"regex": self._one(_PATH_REGEXES)}},
        ]
        found: Json = {"connect_matcher": {}} if self._chance(0.05) else self._one(paths)
        if self._chance(0.3):
            found["case_sensitive"] = self._chance(0.3)
        if self._chance(0.4):
            found["headers"] = [self._header() for _ in range(self.random.randint(1, 2))]
        if self._chance(0.35):
            found["query_parameters"] = [self._parameter()]
        if self._chance(0.05):
            found["grpc"] = {}
        if self._chance(0.1):
            fraction = {"numerator": self._one([0, 100]), "denominator": "HUNDRED"}
            found["runtime_fraction"] = {"default_value": fraction}
        if self._chance(0.1):
            found["tls_context"] = {self._one(["presented", "validated"]): self._chance(0.5)}
        if self._chance(0.02):
            value = {"string_match": {"exact": "x"}}
            found["dynamic_metadata"] = [{"filter": "f", "path": [{"key": "k"}], "value": value}]
        return found

    def _header(self) -> Json:
        found: Json = {"name": self._one([*_NAMES, *_NAMES, ":method", ":authority", "host", ":path", ":scheme"])}
        kinds: list[Json] = [
            {},
            {"present_match": self._chance(0.5)},
            {"range_match": {"start": self._one([-5, 0, 2]), "end": self._one([3, 10, 13])}},
            {"string_match": self._text(_VALUES)},
            {"string_match": self._text((*_VALUES, "GET", "shop", "/a", "http"))},
            {"exact_match": self._one(_VALUES)},
            {"prefix_match": self._one(["al", "1", "sh"])},
            {"suffix_match": self._one(["a", "t", "e"])},
            {"contains_match": self._one(["a", "ph", "n"])},
            {"safe_regex_match": {"regex": self._one(_REGEXES[:4])}},
        ]
        found |= self._one(kinds)
        found["invert_match"] = self._chance(0.3)
        found["treat_missing_header_as_empty"] = self._chance(0.3)
        return found

    def _parameter(self) -> Json:
        found: Json = {"name": self._one(_QUERY)}
        texts = [{"string_match": self._text(_VALUES)} for _ in range(3)]
        return found | self._pick([{}, {"present_match": self._chance(0.5)}, *texts])

    def _text(self, values: tuple[str, ...]) -> Json:
        kind = self._one(_TEXTS)
        if kind == "safe_regex":
            return {"safe_regex": {"regex": self._one([each for each in _REGEXES if each])}}
        # Only an exact text may be empty.
        usable = values if kind == "exact" else tuple(filter(None, values))
        return {kind: self._one(usable), "ignore_case": self._chance(0.4)}

    def _pick(self, choices: list[Json]) -> Json:
        return self.random.choice(choices)

    def _one(self, choices: Any) -> Any:
        return self.random.choice(choices)

    def _chance(self, often: float) -> bool:
        return self.random.random() < often

    def _weighted(self, weights: dict[str, int]) -> str:
        return self.random.choices(list(weights), list(weights.values()))[0]


def saying(name: str, value: str) -> Json:
    """The member of a route or virtual host by which its answers have a header with this value."""
    header = {"key": name, "value": value}
    return {"response_headers_to_add": [{"header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}]}


def backends(names: Sequence[str] = CLUSTERS) -> Iterator[tuple[Json, Json]]:
    """For each name a listener that answers with the cluster's name, and the cluster, which leads there."""
    for name, port in zip(names, free_ports(len(names)), strict=True):
        route = {"match": {"prefix": ""}, "direct_response": {"status": 200}}
        host = {
            "name": "all",
            "domains": ["*"],
            "routes": [route],
            **saying("x-cluster", name),
        }
        manager = {
            "@type": HTTP,
            "stat_prefix": "backend",
            "route_config": {"virtual_hosts": [host]},
            "http_filters": [ROUTER],
        }
        address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
        listener = {
            "name": f"backend-{name}",
            "address": address,
            "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
        }
        endpoints = {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]}
        yield listener, {"name": name, "type": "STATIC", "connect_timeout": "1s", "load_assignment": endpoints}


def fields_used(value: object) -> Iterator[str]:
    """The names of all members in a configuration, for what a generator covers."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from fields_used(each)
    elif isinstance(value, list):
        for each in value:
            yield from fields_used(each)
