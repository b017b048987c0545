"""What the matrix of `xdsctl` needs for its commands about route cases: their rows, and the files that these name."""

from typing import Final

import yaml

from tests.support.xdsctl import DONE, NO, NOT_THERE, USAGE

ROWS: Final[dict[str, dict[int, str]]] = {
    "route-cases apply": {DONE: "-f {route_cases} --dry-run", NO: "-f {policy_case}", USAGE: "-f {policy}"},
    "route-cases delete": {DONE: "m-spare", NOT_THERE: "nobody"},
    "route-cases export": {DONE: "", NOT_THERE: "-e nowhere"},
    "route-cases get": {DONE: "m-kept", NOT_THERE: "nobody"},
    "route-cases import": {DONE: "{router_check} --dry-run", NO: "{policy}"},
    "route-cases list": {DONE: "", NOT_THERE: "-e nowhere"},
    "route-cases run": {DONE: "m-kept", NO: "-f {failing_cases}", USAGE: "m-kept -f {failing_cases}"},
}
_TEST: Final = {
    "test_name": "m-test",
    "input": {"authority": "m", "path": "/", "method": "GET"},
    "validate": {"cluster_name": "m-eds", "path_rewrite": "/x"},
}


def _case(name: str, answer: str = "refused") -> dict[str, object]:
    return {
        "name": name,
        "authority": "nowhere",
        "listener": "nowhere",
        "expect": {"answer": answer},
        "blocking": False,
    }


TEXTS: Final = {
    "route_cases": yaml.safe_dump({"cases": [_case("m-kept"), _case("m-spare")]}),
    "failing_cases": yaml.safe_dump([_case("m-fails", "redirect")]),
    "policy_case": yaml.safe_dump([{"name": "m-none"}]),
    "router_check": yaml.safe_dump({"tests": [_TEST]}),
}
