"""Redis, which carries hints and nothing else (law 4): sends them, and says whether it answers. Nobody waits for it."""
