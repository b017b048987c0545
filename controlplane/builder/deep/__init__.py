"""Deep validation: a real Envoy reads what is about to be served (an environment's `deep_validation`).

    assembled    resources -> the bootstrap that Envoy is shown, and which resources it must never be shown (pure)
    envoy        the sandbox: one run of `envoy --mode validate`
    answers      what Envoy answered before, kept for every worker
    inspection   which resources to ask about, what was asked before, the search, and what is to be said

The search itself is a stage (`stages.inspect`). Whatever goes wrong here delays a build by a bounded time and holds
nothing back: only Envoy's own word against a resource does.
"""
