#!/bin/sh
# Rehearses the site beside it at several sizes, one after another, and prints
# what each took: wall time, the time on processors (user and system), and that of a
# node, with how many times it is that of the same stack at 1,024 nodes, where that
# ran before. Fails when not every node was accepted.
#   scale.sh BIN NODES[:STACK]...      BIN is the folder of the ironrail program
set -u
bin=$1
shift
site=$(dirname "$0")
out=$(mktemp)
took=$(mktemp)
trap 'rm -f "$out" "$took"' EXIT INT TERM

# number NAME prints a number of the summary; list NAME how many entries a list has.
number() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" "$out"; }
list() { sed -n "s/.*\"$1\":\[\([^]]*\)\].*/\1/p" "$out" | tr ',' '\n' | grep -c .; }

# seconds adds what the last line of `times` says: user and system, as 1m2.34s.
seconds() { tail -n 1 "$took" | awk '{ for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } printf "%.2f", s }'; }

failed=0 base=' '
printf 'load %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null)"
printf '%6s %5s %9s %10s %12s %11s %10s %12s %s\n' nodes stack accepted 'wall time' simulated memory cpu 'cpu a node' 'of 1,024'
for size in "$@"; do
	nodes=${size%%:*} stack=rdma
	case $size in *:*) stack=${size#*:} ;; esac
	( "$bin/ironrail" -C "$site" --var "nodes=$nodes" --var "stack=$stack" rehearse --json | grep '"type":"summary"' >"$out"; times >"$took" )
	accepted=$(list accepted) cpu=$(seconds)
	[ "$nodes" -ne 1024 ] || base="$base$stack=$cpu "
	awk -v n="$nodes" -v k="$stack" -v a="$accepted" -v w="$(number wall_time)" -v s="$(number simulated_time)" -v m="$(number peak_memory)" -v c="$cpu" -v b="$(echo "$base" | sed -n "s/.* $stack=\([0-9.]*\) .*/\1/p")" 'BEGIN {
		printf "%6d %5s %9d %8.1f s %8d min %7d MiB %8.1f s %9.1f ms %s\n", n, k, a, w, s / 60, m / 1048576, c, c * 1000 / n, (b > 0 ? sprintf("%.2f", c / n / (b / 1024)) : "-")
	}'
	[ "$accepted" -eq "$nodes" ] || failed=1
done
exit $failed
