"""What requests and answers look like: one module per noun, requests (`…In`) and answers (`…Out`) apart.

Requests are read by these shapes; answers are described by them for the schema, and tests hold every answer against it.
"""
