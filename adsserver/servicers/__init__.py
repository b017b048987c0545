"""The gRPC face of the ADS server: which methods exist, and the one stream behind all of them."""
