#!/bin/sh
# Measures plans of ironrail, and of OpenTofu beside it where that can be had:
#   opentofu.sh IRONRAIL [NODES]
# OpenTofu is built from its public module, outside of this repository, once; TOFU
# names a program that is there already. Without either, this says so and measures
# ironrail alone. bench/plan says what is measured.
set -u
release=v1.10.6
ironrail=${1:?the ironrail program}
nodes=${2:-12500}
cd "$(dirname "$0")/.." || exit 1

tofu=${TOFU:-${XDG_CACHE_HOME:-$HOME/.cache}/ironrail/tofu-$release}
if [ ! -x "$tofu" ]; then
	# Its module has replace lines: it is built as the main module, from a copy.
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT INT TERM
	source=$(cd "$work" && GOFLAGS=-mod=mod timeout 900 go mod download -json "github.com/opentofu/opentofu@$release" 2>/dev/null | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	if [ -n "$source" ] && cp -r "$source" "$work/tofu" && chmod -R u+w "$work/tofu" && mkdir -p "$(dirname "$tofu")"; then
		(cd "$work/tofu" && GOFLAGS='' CGO_ENABLED=0 timeout 1800 go build -o "$tofu" ./cmd/tofu) >"$work/log" 2>&1 || tail -3 "$work/log" >&2
	fi
fi
if [ ! -x "$tofu" ]; then
	echo "OpenTofu $release cannot be had here: ironrail is measured alone. TOFU names a program that is there." >&2
	tofu=
fi
exec go run ./bench/plan -ironrail "$ironrail" -tofu "$tofu" -nodes "$nodes"
