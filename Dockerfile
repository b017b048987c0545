# One image for every role: web, worker, beat, ads and the one-shot commands of manage.py.
# What reaches the build is listed in .dockerignore; scripts/dockerfile_steps carries these steps out without an engine.

# Where builds must repeat to the byte: --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:...
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

# --- What runs, made with tools that stay behind --------------------------------------------------------------------

FROM ${PYTHON_IMAGE} AS builder

WORKDIR /build
COPY deploy/docker/requirements-uv.txt requirements.txt ./
RUN python -m pip install --require-hashes --only-binary :all: -r requirements-uv.txt
# Wheels only: nothing is compiled, so no compiler is needed here either, and no package runs a build script.
RUN python -m uv venv --python "$(command -v python)" /opt/venv \
    && python -m uv pip install --python /opt/venv/bin/python --require-hashes --only-binary :all: \
        --link-mode copy --compile-bytecode -r requirements.txt \
    && rm -f /opt/venv/.lock

WORKDIR /srv/parley
COPY . .
# A release's context says which commit it is; one from a checkout is told: --build-arg COMMIT="$(git rev-parse HEAD)".
ARG COMMIT=
RUN if [ -n "$COMMIT" ]; then printf '%s\n' "$COMMIT" >xdscore/commit.txt; fi
# Compiled once, here: the image is not writable where it runs.
RUN python -m compileall -q --invalidation-mode unchecked-hash .

# --- What runs -------------------------------------------------------------------------------------------------------

FROM ${PYTHON_IMAGE} AS runtime

LABEL org.opencontainers.image.title="Parley" \
      org.opencontainers.image.description="An xDS control plane that says why" \
      org.opencontainers.image.licenses="Apache-2.0"

# Numbers, not names, in USER and in compose: an orchestrator can see that they are not root.
RUN groupadd --gid 10001 parley \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin parley
# A new volume mounted here takes over owner and mode.
RUN install --directory --owner 10001 --group 10001 --mode 0700 /var/lib/parley

COPY --from=builder /opt/venv /opt/venv
COPY --from=builder /srv/parley /srv/parley

ENV PATH=/opt/venv/bin:$PATH \
    PARLEY_HOME=/var/lib/parley \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /srv/parley
USER 10001:10001

# Console and REST, xDS; the metrics and probes of web, ads, worker and beat.
EXPOSE 8000 18000 9101 9102 9103 9104

# Alive, not ready: some orchestrators kill what is unhealthy, and ads serves on while the database is away.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-I", "-S", "deploy/docker/healthcheck.py"]

ENTRYPOINT ["python", "manage.py"]
CMD ["help"]
