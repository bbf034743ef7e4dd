#!/bin/sh
# Measures the processor time of the agent when it writes an image to a disk and reads
# it back, of this version and of an earlier one, in turns and in one run:
#   write.sh [COMMIT] [MIB] [TIMES]
# The image holds files of this machine's /usr; the disk is a file in TMPDIR, which
# should lie on a disk. Needs sgdisk and the history of the repository.
set -eu
commit=${1:-9effd31}
mib=${2:-1024}
times=${3:-5}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
pids=
cleanup() {
	for p in $pids; do kill "$p" 2>/dev/null || true; done
	git worktree remove --force "$work/before" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# Packages that moved since; the program is the same.
git worktree add -q --detach "$work/before" "$commit"
mkdir -p "$work/before/bench/imagewrite"
cp bench/imagewrite/main.go "$work/before/bench/imagewrite/"
[ -d "$work/before/internal/wire" ] || sed -i 's#ironrail/internal/wire"#ironrail/provision/agent/wire"#' "$work/before/bench/imagewrite/main.go"
export CGO_ENABLED=0
(cd "$work/before" && go build -trimpath -o "$work/imagewrite-before" ./bench/imagewrite)
go build -trimpath -o "$work/imagewrite-now" ./bench/imagewrite

truncate -s "${mib}M" "$work/image"
# What tar prints when head has enough is no error.
(cd /usr && tar cf - bin lib share 2>/dev/null || true) | head -c "$(((mib - 3) * 1048576))" | dd of="$work/image" bs=1M seek=2 conv=notrunc status=none
sgdisk -n 1:4096:0 "$work/image" >/dev/null

for v in before now; do
	set -- $("$work/imagewrite-$v" pack "$work/image" "$work/store-$v")
	echo "$1 $2" >"$work/image-$v"
	"$work/imagewrite-$v" serve "$work/store-$v" >"$work/url-$v" &
	pids="$pids $!"
	truncate -s "$((mib + 64))M" "$work/disk-$v"
done
rm "$work/image"
for v in before now; do while [ ! -s "$work/url-$v" ]; do sleep 0.1; done; done
for i in $(seq "$times"); do
	for v in before now; do
		read -r digest key <"$work/image-$v"
		"$work/imagewrite-$v" write "$(cat "$work/url-$v")" "$digest" "$key" "$work/disk-$v" 1 >>"$work/times-$v"
	done
done
for v in before now; do
	sort -n "$work/times-$v" | awk -v v="$v" '{ a[NR] = $1 } END { printf "%-7s %.3f to %.3f, median %.3f processor seconds a GB\n", v, a[1], a[NR], a[int((NR + 1) / 2)] }'
done
paste "$work/times-before" "$work/times-now" | awk '{ print $3 / $1 }' | sort -n | awk -v c="$commit" '{ a[NR] = $1 } END { printf "ratio to %s: median %.3f (%.3f to %.3f)\n", c, a[int((NR + 1) / 2)], a[1], a[NR] }'
