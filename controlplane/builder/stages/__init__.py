"""The steps of a build, as pure functions: rows in, entries out. No database, clock or randomness."""
