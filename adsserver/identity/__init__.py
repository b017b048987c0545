"""Who a caller is, and whether it still is who it proved to be: certificates, authorities, tokens, nodes. Denies what
it cannot prove.
"""
