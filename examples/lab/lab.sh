#!/bin/sh
# The lab: two QEMU machines from power-off to accepted, by ironrail alone. Run
# by `make lab`, as root.
#
#   KEEP=1   leaves the machines running at the end and says how to look around
#   NAME=x   uses this network namespace instead of ironrail-lab
#
# The OS image and the driver repository are built once, by the digest of their
# recipe, into .ironrail beside this file. Everything else lies in .lab: a copy
# of the site, with its state, and the machines. Both are made anew at each run.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$here/../../bin" && pwd)
name=${NAME:-ironrail-lab}
work=$here/.lab
site=$work/site
machines=$work/m
hang=20m # only what hangs fails the lab by time

phases=$(mktemp)
started=$(date +%s)
up=no

# say prints a heading.
say() { printf '\n== %s\n' "$*"; }

# run shows a command line and runs it.
run() {
	printf '$ %s\n' "$(echo "$*" | sed "s#^inside ##; s#$bin/##g; s#$here#examples/lab#g")"
	"$@"
}

# timed runs a phase and notes its wall time.
timed() {
	phase=$1
	shift
	begun=$(date +%s)
	run "$@"
	echo "$phase:$(($(date +%s) - begun))" >>"$phases"
}

# inside runs a command in the lab's network.
inside() { timeout --foreground --kill-after=2m "$hang" "$bin/ironrail-lab" exec --dir "$machines" -- "$@"; }

# finish ends the machines, whatever happened, and leaves the logs.
finish() {
	code=$?
	trap - EXIT INT TERM
	rm -f "$phases"
	if [ "$up" = yes ]; then
		if [ "${KEEP:-}" = 1 ] && [ "$code" = 0 ]; then
			cat <<-END

			The machines run on. Look around, then end them:
			  bin/ironrail-lab status --dir examples/lab/.lab/m
			  bin/ironrail-lab console --dir examples/lab/.lab/m n1
			  bin/ironrail -C examples/lab/.lab/site status
			  LAB_BMC_PASSWORD=\$(cat examples/lab/.lab/password) \\
			    bin/ironrail-lab exec --dir examples/lab/.lab/m -- bin/ironrail -C examples/lab/.lab/site plan
			  bin/ironrail-lab down --dir examples/lab/.lab/m --purge
			END
			exit 0
		fi
		"$bin/ironrail-lab" down --dir "$machines" || code=1
		rm -f "$machines"/*/disk*.raw
	fi
	echo "Logs: examples/lab/.lab/m (consoles, power), examples/lab/.lab/site/.ironrail (events, evidence, report)"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

sh "$here/setup.sh" lab
if [ "$(id -u)" != 0 ]; then
	echo "error: the lab needs root: it makes a network namespace and builds a disk image" >&2
	exit 1
fi

say "Image and driver repository (built once, kept by the digest of their recipe)"
timed "image" "$bin/ironrail" -C "$here" image build

say "A fresh copy of the site, and two machines without power"
if [ -d "$machines" ]; then
	"$bin/ironrail-lab" down --dir "$machines" --purge # of an earlier run, kept or dead
fi
rm -rf "$work"
mkdir -p "$site/.ironrail/keys"
cp "$here"/*.hcl "$here"/*.csv "$site/"
cp -al "$here/.ironrail/images" "$here/.ironrail/repo" "$site/.ironrail/"
cp -a "$here/.ironrail/keys/." "$site/.ironrail/keys/"
(umask 077 && od -An -N8 -tx8 /dev/urandom | tr -d ' \n' >"$work/password")
LAB_BMC_PASSWORD=$(cat "$work/password")
export LAB_BMC_PASSWORD
up=yes
timed "machines" "$bin/ironrail-lab" up --dir "$machines" --site "$site" --name "$name" --detach
ironrail="$bin/ironrail -C $site"

say "Plan"
timed "plan" inside $ironrail plan

say "Apply"
timed "apply" inside $ironrail apply --auto-approve

say "A second plan has nothing to do"
timed "second plan" inside $ironrail plan --detailed-exitcode

say "Report"
run $ironrail report

say "Slurm"
run $ironrail handover

say "Wall time"
while IFS=: read -r phase seconds; do
	printf '  %-12s %4d s\n' "$phase" "$seconds"
done <"$phases"
printf '  %-12s %4d s\n' "all" $(($(date +%s) - started))
