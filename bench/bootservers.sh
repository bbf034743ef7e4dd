#!/bin/sh
# CPU time of the boot services beside nginx (HTTP), dnsmasq (TFTP) and Kea (DHCP), in interleaved
# rounds: bootservers.sh [ROUNDS [http|tftp|dhcp|storm]]. Needs root, nginx (nginx-light), dnsmasq (dnsmasq-base),
# kea-dhcp4 (kea-dhcp4-server), ip (iproute2) and sgdisk; the servers have a network of their own.
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-5}
only=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
for p in nginx dnsmasq kea-dhcp4 ip sgdisk; do
	command -v "$p" >/dev/null || { echo "bootservers.sh: needs $p" >&2; exit 1; }
done
CGO_ENABLED=0 go build -trimpath -o "$work/bootservers" ./bench/bootservers
unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$work/bootservers" -rounds "$rounds" -only "$only"
