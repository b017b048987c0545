"""Carry out a Dockerfile's steps on a machine without a container engine, as far as that is possible.

`parsing` reads the file, `context` says what a build would send, `building` carries the steps out below a directory
that stands for the image, `trying` runs what the image is for as its own user. `python -m scripts.dockerfile_steps`
does all of it and says which steps were not exercised, and why.
"""
