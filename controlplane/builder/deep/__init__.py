"""Deep validation: a real Envoy reads what is about to be served (an environment's `deep_validation`).

    showing      which resources Envoy may be shown, and why not the others (pure)
    assembled    resources -> the bootstrap that Envoy is shown (pure)
    envoy        the sandbox: one run of `envoy --mode validate`
    answers      what Envoy answered before, kept for every worker
    inspection   which resources to ask about, what was asked before, the search, and what is to be said
    unasked      what no Envoy has judged of what somebody only tries, why, and how to have it

The search itself is a stage (`stages.inspect`). Whatever goes wrong here delays a build by a bounded time and holds
nothing back: only Envoy's own word against a resource does.
"""
