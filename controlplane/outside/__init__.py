"""Reaches who is outside of the installation and may be slow or hostile: one deadline for everything, no address that
is not public unless the operator listed it, and signatures by which a receiver tells who sent something.
"""
