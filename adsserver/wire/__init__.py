"""Bytes in, values out, and back: the protobuf messages of discovery and of CSDS. Decides nothing."""
