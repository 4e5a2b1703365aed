#!/bin/bash
# Goal: scripts/keep_workers starts what ends, gives up on what does not mend itself, and passes on a
# stop. Method: a made-up `swerve` that writes down each start and ends as the test says.
# Waiting is by polling for a state, never by time.
#
# Usage: test_keep_workers.sh SOURCE_ROOT
set -u -o pipefail
root=$(realpath "$1")
work=$(mktemp -d /tmp/swerve-keep-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export SWERVE="$work/swerve" KEEP_DELAY_S=0.01 KEEP_DELAY_S_MAX=0.02

cat >swerve <<'END'
#!/bin/bash
# Lives until it is told to stop when `stay` is there; else ends with the code in `code`.
here=$(dirname "$0")
echo "start $*" >>"$here/log"
if [ -e "$here/stay" ]; then
    trap 'echo stopped >>"$here/log"; exit 0' TERM
    while :; do sleep 0.02; done
fi
exit "$(cat "$here/code")"
END
chmod +x swerve

lines() { cat log 2>/dev/null | grep -c "$1"; }
until_lines() { while [ "$(lines "$1")" -lt "$2" ]; do sleep 0.02; done; }

echo 1..4
rm -f log stay
echo 4 >code
"$root/scripts/keep_workers" 1 --pool bulk 2>err &
keeper=$!
until_lines "start worker --pool bulk" 4
kill -TERM "$keeper"
wait "$keeper"
[ $? = 0 ] && echo "ok 1 - what_ends_is_started_again" || echo "not ok 1 - what_ends_is_started_again"

rm -f log
touch stay
"$root/scripts/keep_workers" 3 2>err &
keeper=$!
until_lines start 3
kill -TERM "$keeper"
wait "$keeper"
[ $? = 0 ] && [ "$(lines stopped)" = 3 ] && [ "$(lines start)" = 3 ] &&
    echo "ok 2 - a_stop_reaches_every_worker" || echo "not ok 2 - a_stop_reaches_every_worker"

rm -f log stay
echo 2 >code
"$root/scripts/keep_workers" 2 2>err
[ $? = 2 ] && grep -q "does not mend" err && [ "$(lines start)" -le 2 ] &&
    echo "ok 3 - wrong_usage_ends_it" || echo "not ok 3 - wrong_usage_ends_it"

rm -f log
echo 0 >code
"$root/scripts/keep_workers" 2 --drain 2>err
[ $? = 0 ] && [ "$(lines start)" = 2 ] &&
    echo "ok 4 - a_drained_worker_is_done" || echo "not ok 4 - a_drained_worker_is_done"
