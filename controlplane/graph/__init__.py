"""The resources of an environment, or of what one client sees, as a graph: who refers to whom, and how each stands.

`selectors` reads it; `model` is what it is made of, `layout` says where each node is drawn, `dot` and `svg` write it
down. How a resource stands is said by `status` alone.
"""
