"""The REST API: thin. Parses, calls one service or selector, renders."""
