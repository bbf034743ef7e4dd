#!/bin/sh
# Runs the lab's tests one after another, as root, and sums them up: every
# failure, every kill, a site in service, UEFI HTTP boot, data disks, every system on one
# disk and on a mirror. Some hours.
#
#   full.sh [-run PATTERN]    only the tests whose names match
#   LAB_RESUME=1 full.sh      without those that have passed with the same programs
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$here/.lab"
log=$here/.lab/full.log
{
	code=0
	(cd "$here/../.." && go test -count=1 -v -timeout 600m -tags labfull ./examples/lab "$@") 2>&1 || code=$?
	echo "exit $code"
} | tee "$log"

echo
echo "Summary (all of it: examples/lab/.lab/full.log)"
grep -E '^ *--- (PASS|FAIL|SKIP)' "$log" | sed 's/^ *--- /  /' | grep -vE ' (TestPackages|TestParseRefuses) ' || true
tail -n 1 "$log" | grep -qx 'exit 0'
