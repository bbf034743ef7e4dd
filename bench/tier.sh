#!/bin/sh
# tier.sh NAME COMMAND...   runs a command, and says at its end what time it took and how
#                           busy the machine is. Where TIERS names a file, a line goes
#                           there as well: name, seconds, load. Nothing is judged by it.
set -u
name=$1
shift
start=$(date +%s)
"$@"
status=$?
took=$(($(date +%s) - start))
load=$(cut -d' ' -f1-3 /proc/loadavg 2>/dev/null || echo '? ? ?')
printf '=== %s: %d:%02d, load %s\n' "$name" $((took / 60)) $((took % 60)) "$load"
if [ -n "${TIERS:-}" ]; then
	echo "$name $took $load" >>"$TIERS"
fi
exit $status
