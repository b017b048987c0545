"""Where a request goes: the choices of Envoy, and of gRPC for `xds:///`, made again from the messages that they hold.

    Request --tracing--> listener --chains--> filter chain --seen--> the request as its manager sees it
                              |
                              +--domains--> virtual host --matching--> route --actions--> clusters, redirect, answer
                                                                                    |
                                                                                    +--endpoints--> addresses

`tracing.traced` is a generator: it yields the names that it needs and is sent what the client has of them, so that it
neither reads nor waits. Each choice leaves a rung, with a sentence for each candidate that lost (truth.md Q1, Q2). What
is not judged is named in `unsupported`, and an answer that depends on it is `unknown`. A real Envoy is the oracle
(tests/e2e/test_routing_oracle.py).
"""
