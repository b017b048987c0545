"""The client's protocol core: requests, responses and time in, effects out."""
