"""A program: ask by the REST client for all that GET can ask for, and print each operation's status as JSON.

It imports the REST client and nothing of ours: it runs where nothing else is installed (tests/e2e/test_rest_client.py).
"""

import importlib
import inspect
import json
import os
import pkgutil
import sys

import parley_client.api
from parley_client import AuthenticatedClient
from parley_client.models import ProblemOut

# By the names of parameters; an object that is not there is answered 404, and that is read, too.
KNOWN = {
    "environment_key": "default",
    "type_": "cluster",
    "name": "pay",
    "epoch": 1,
    "node_id": "nobody",
    "variant": "envoy",
    "client": "envoy",
}
NOBODY = "00000000-0000-4000-8000-000000000000"


def main() -> None:
    """Print the statuses."""
    statuses: dict[str, int] = {}
    token = os.environ["PARLEY_TOKEN"]
    with AuthenticatedClient(os.environ["PARLEY"], token=token, raise_on_unexpected_status=True) as client:
        for found in pkgutil.walk_packages(parley_client.api.__path__, "parley_client.api."):
            module = importlib.import_module(found.name)
            if not hasattr(module, "sync_detailed"):
                continue
            parameters = inspect.signature(module.sync_detailed).parameters.values()
            needed = [each for each in parameters if each.default is inspect.Parameter.empty and each.name != "client"]
            if '"method": "get"' not in inspect.getsource(module._get_kwargs):
                continue
            given = {each.name: KNOWN.get(each.name, 1 if each.annotation is int else NOBODY) for each in needed}
            answer = module.sync_detailed(client=client, **given)
            if answer.parsed is None:
                raise SystemExit(f"{found.name}: {answer.status_code} was not read: {answer.content[:200]!r}")
            if isinstance(answer.parsed, ProblemOut) != (answer.status_code >= 400):
                raise SystemExit(f"{found.name}: {answer.status_code} was read as {type(answer.parsed).__name__}")
            statuses[found.name.removeprefix("parley_client.api.")] = int(answer.status_code)
    sys.stdout.write(json.dumps(statuses))


main()
