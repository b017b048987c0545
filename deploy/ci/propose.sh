#!/bin/sh
# For an environment that asks for review: propose a folder of manifests as a change set, and publish it once people
# approved it. One run does what can be done now, so run it at every push and again every few minutes: the first proposes,
# those after it wait, and the one after the last approval publishes and waits for the clients. People approve in the
# console, or schedule it there; then it is published without this script. Files that differ make a draft of the same
# change set again, which is submitted again: approvals are of what was approved.
#
#   XDSCTL_SERVER=https://parley.example XDSCTL_TOKEN=… deploy/ci/propose.sh FOLDER TITLE [TYPE/NAME]…
#
# ACCESS_RULES=FILE and CLIENT_GROUPS=FILE propose rules and groups with them, as 'xdsctl get rules -o yaml' and 'xdsctl get
# groups -o yaml' print them; the token then needs the role access-editor, too. A rule without an id is made once: one that
# is just like it stands for it from then on. What the files leave out stays; rule/ID and group/KEY delete.
#
# TITLE names the change set from one run to the next, so no other pipeline may have the same. Each TYPE/NAME is deleted,
# if it is there: a change set has no --prune.
#
# Ends with xdsctl's exit status: 0 nothing is left to do in this run, 1 rejected, expired, or refused by the clients (and
# taken back), 3 no answer from the server, 4 somebody wrote the same resources meanwhile, or the environment is frozen, 5
# undecided when the time was up, 6 connected clients would lose something: nothing was changed. If that is meant, run it
# again with ACCEPT_LOSS=N, the number of clients that was named. 7 there is no such environment, 8 the token is not accepted
# or may not do that: of all these only 3 is worth trying again.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: propose.sh FOLDER TITLE [TYPE/NAME]..." >&2
    exit 2
fi
folder=$1 title=$2
shift 2
: "${TIMEOUT:=5m}" "${FORMAT:=table}" "${ACCEPT_LOSS:=0}" "${ACCESS_RULES:=}" "${CLIENT_GROUPS:=}"
deletions=$#
for resource; do
    shift
    set -- "$@" --delete "$resource"
done
[ -z "$ACCESS_RULES" ] || set -- "$@" --rule "$ACCESS_RULES"
[ -z "$CLIENT_GROUPS" ] || set -- "$@" --group "$CLIENT_GROUPS"

xdsctl validate -f "$folder" -o "$FORMAT"

# The newest that is not published. Its id is asked for without a pipe, whose status would be that of its last command.
found=$(xdsctl changesets list --title "$title" --state draft --state review --state approved --state scheduled \
    --state stale --state rejected --state expired -o name)
id=${found%%[!0-9a-f-]*}

if [ -z "$id" ]; then
    differs=0
    xdsctl diff -f "$folder" --quiet >/dev/null || differs=$?
    case $differs in
        0) if [ "$deletions" -eq 0 ] && [ -z "$ACCESS_RULES$CLIENT_GROUPS" ]; then echo "Nothing to do."; exit 0; fi ;;
        1) ;;
        *) exit "$differs" ;;
    esac
    id=$(xdsctl changesets create --title "$title" -f "$folder" "$@" -o name)
else
    [ "$deletions" -gt 0 ] || set -- "$@" --delete none
    xdsctl changesets edit "$id" -f "$folder" "$@" --quiet >/dev/null
fi

differs=0
xdsctl changesets diff "$id" || differs=$?
case $differs in
    0) xdsctl changesets delete "$id" --yes --quiet >/dev/null; echo "Nothing to do."; exit 0 ;;
    1) ;;
    *) exit "$differs" ;;
esac

found=$(xdsctl changesets get "$id" --quiet -o json)
state=$(printf '%s' "$found" | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])')
case $state in
    draft) xdsctl changesets submit "$id"; echo "Proposed: others have to approve it."; exit 0 ;;
    review) echo "Change set $id waits for others to approve it."; exit 0 ;;
    scheduled) echo "Change set $id is scheduled: it is published by itself."; exit 0 ;;
    approved) ;;
    stale) xdsctl changesets get "$id" >&2; echo "Decide about what moved: xdsctl changesets merge." >&2; exit 4 ;;
    *) xdsctl changesets get "$id" >&2; exit 1 ;;
esac

# What was approved is what is published: an edit would have made a draft of it.
taken=0
change=$(xdsctl changesets publish "$id" --accept-loss "$ACCEPT_LOSS" --wait --timeout "$TIMEOUT" -o name) || taken=$?
[ -z "$change" ] || echo "change $change"

# Only a refusal by clients is undone. Without an answer, or without a decision, nobody knows that going back would help.
if [ "$taken" -eq 1 ] && [ -n "$change" ]; then
    echo "The fleet refuses it; taking it back." >&2
    xdsctl undo "$change" --reason "refused by clients: $title" --wait --timeout "$TIMEOUT" --quiet >&2 ||
        echo "The way back was not taken; see above, and 'xdsctl incidents list'." >&2
fi
exit "$taken"
