#!/bin/sh
# Bring a folder of manifests to the fleet: validate, show the difference, apply what was shown, wait for the clients,
# and go back if they refuse it. Ends with xdsctl's exit status: 0 taken, 1 refused (and rolled back), 3 no answer from
# the server, 4 somebody else changed something meanwhile, 5 undecided when the time was up, 6 connected clients would
# lose something: nothing was changed. Look at what was shown; if it is meant, run it again with ACCEPT_LOSS=N, the number
# of clients that was named. 7 there is no such environment, 8 the token is not accepted or may not do that: of all these
# only 3 is worth trying again.
#
#   XDSCTL_SERVER=https://parley.example XDSCTL_TOKEN=… deploy/ci/rollout.sh FOLDER OWNER MESSAGE
set -eu

if [ $# -ne 3 ]; then
    echo "usage: rollout.sh FOLDER OWNER MESSAGE" >&2
    exit 2
fi
folder=$1 owner=$2 message=$3
: "${TIMEOUT:=5m}" "${FORMAT:=table}" "${ACCEPT_LOSS:=0}"

xdsctl validate -f "$folder" --owner "$owner" --prune -o "$FORMAT"

# What is reviewed below is what is applied: if anything moves in between, apply refuses with status 4.
base=$(xdsctl rollout history -o name | head -n 1)

differs=0
xdsctl diff -f "$folder" --owner "$owner" --prune || differs=$?
case $differs in
    0) echo "Nothing to do."; exit 0 ;;
    1) ;;
    *) exit "$differs" ;;
esac

taken=0
xdsctl apply -f "$folder" --owner "$owner" --prune --base-epoch "${base:-0}" --message "$message" \
    --accept-loss "$ACCEPT_LOSS" --wait --timeout "$TIMEOUT" -o "$FORMAT" || taken=$?

# Only a refusal is undone. Without an answer, or without a decision, nobody knows that going back would help.
if [ "$taken" -eq 1 ] && [ -n "$base" ]; then
    echo "The fleet refuses it; back to epoch $base." >&2
    xdsctl rollout undo --to "$base" --reason "refused by clients: $message" --no-hold --wait --timeout "$TIMEOUT" \
        --quiet >&2 || echo "The way back was not taken; see above, and 'xdsctl incidents list'." >&2
fi
exit "$taken"
