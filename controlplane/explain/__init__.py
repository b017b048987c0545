"""Why does this client (not) have this resource: facts in, answer out."""
