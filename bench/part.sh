#!/bin/sh
# part.sh PART   prints those lines of its input, sorted, that belong to a part: of 1/2 the
#                first, the third and so on. 1/1 is all of them.
set -eu
part=${1%/*} parts=${1#*/}
[ "$part" -ge 1 ] && [ "$part" -le "$parts" ] || {
	echo "part.sh: $1 is no part, such as 1/2" >&2
	exit 64
}
LC_ALL=C sort | awk -v part="$part" -v parts="$parts" 'NR % parts == part % parts'
