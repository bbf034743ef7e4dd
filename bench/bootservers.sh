#!/bin/sh
# Processor seconds of the boot services beside nginx (HTTP) and dnsmasq (TFTP), in one run and in
# turns: bootservers.sh [ROUNDS]. Needs root, nginx (nginx-light), dnsmasq (dnsmasq-base) and sgdisk; the servers
# have a network of their own, on loopback.
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
for p in nginx dnsmasq sgdisk; do
	command -v "$p" >/dev/null || { echo "bootservers.sh: needs $p" >&2; exit 1; }
done
CGO_ENABLED=0 go build -trimpath -o "$work/bootservers" ./bench/bootservers
unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$work/bootservers" -rounds "$rounds"
