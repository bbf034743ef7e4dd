#!/bin/sh
# Rehearses the site beside it at several sizes, one after another, and prints
# what each took. Fails when not every node was accepted.
#   scale.sh BIN NODES[:STACK]...      BIN is the folder of the ironrail program
set -u
bin=$1
shift
site=$(dirname "$0")
out=$(mktemp)
trap 'rm -f "$out"' EXIT INT TERM

# number NAME prints a number of the summary; list NAME how many entries a list has.
number() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" "$out"; }
list() { sed -n "s/.*\"$1\":\[\([^]]*\)\].*/\1/p" "$out" | tr ',' '\n' | grep -c .; }

failed=0
printf '%6s %5s %9s %10s %12s %11s %10s\n' nodes stack accepted 'wall time' simulated memory 'per node'
for size in "$@"; do
	nodes=${size%%:*} stack=rdma
	case $size in *:*) stack=${size#*:} ;; esac
	"$bin/ironrail" -C "$site" --var "nodes=$nodes" --var "stack=$stack" rehearse --json | grep '"type":"summary"' >"$out"
	accepted=$(list accepted)
	awk -v n="$nodes" -v k="$stack" -v a="$accepted" -v w="$(number wall_time)" -v s="$(number simulated_time)" -v m="$(number peak_memory)" 'BEGIN {
		printf "%6d %5s %9d %8.1f s %8d min %7d MiB %7.1f ms\n", n, k, a, w, s / 60, m / 1048576, w * 1000 / n
	}'
	[ "$accepted" -eq "$nodes" ] || failed=1
done
exit $failed
