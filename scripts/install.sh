#!/bin/sh
# install.sh PYTHON VENV LOCK: make VENV hold the packages of LOCK, with the hashes it lists. Quick when it does already.
#
# The development lock contains the other one, so an environment with it serves `make run` too. uv installs in seconds
# what takes pip a minute (dependencies.md fact 13); where uv cannot be had or does not know the machine's package
# index (it does not read pip's configuration), pip does the work. Whichever does, by hash: uv itself, too.
set -eu

python=$1
venv=$2
lock=$3
dev=requirements-dev.txt
stamp=$venv/.installed

fail() {
    echo "$1" >&2
    exit 2
}

# The name of a lock and a checksum of its content.
mark() { echo "$1 $(cksum <"$1")"; }

if [ -x "$venv/bin/python" ] && [ -f "$stamp" ]; then
    # A checkout that was moved or copied has an environment with another place's paths in it.
    here=$(cd "$venv" && pwd -P)
    installed=$(cat "$stamp")
    for candidate in "$lock" "$dev"; do
        [ "$installed" = "$here $(mark "$candidate")" ] && exit 0
    done
fi

command -v "$python" >/dev/null 2>&1 || fail "PYTHON '$python' is not a program: install Python 3.11 or later, or run make with PYTHON=..."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "PYTHON '$python' is older than Python 3.11: run make with PYTHON=python3.11 or later."
"$python" -c 'import ensurepip, venv' 2>/dev/null || fail "PYTHON '$python' cannot make virtual environments: on Debian, apt install python3-venv."

# A worktree may borrow the environment of another checkout, and must not empty it.
[ -L "$venv" ] && fail "$venv is a link, and does not hold what $lock lists: remove the link, and run make again."

echo "Installing $lock into $venv ..."
rm -f "$stamp"
"$python" -m venv --clear "$venv"
if "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
    -r deploy/docker/requirements-uv.txt >/dev/null 2>&1 &&
    "$venv/bin/python" -m uv pip install --quiet --python "$venv/bin/python" --compile-bytecode --require-hashes -r "$lock" 2>/dev/null; then
    :
else
    echo "uv cannot install here; pip takes about a minute ..."
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock" ||
        fail "$lock could not be installed into $venv: pip says why above."
fi
echo "$(cd "$venv" && pwd -P) $(mark "$lock")" >"$stamp"
