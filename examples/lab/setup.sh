#!/bin/sh
# Checks for the Debian packages of packages.txt. As root it installs what is
# missing; else it prints the one line that does, and says what is left out.
#
#   setup.sh lab    for `make lab`: fails when something is missing
#   setup.sh test   for `make test`: tests without their peers skip, each with
#                   its reason
set -eu

use=${1:-lab}
top=$(cd "$(dirname "$0")/../.." && pwd)
check="$top/bin/ironrail-lab check"
case $use in
lab) ;;
test) check="$check --all" ;;
*)
	echo "usage: setup.sh lab|test" >&2
	exit 64
	;;
esac

if [ "$(id -u)" = 0 ]; then
	$check --install && exit 0
else
	$check && exit 0
fi
if [ "$use" = lab ]; then
	exit 1
fi
if [ "$(id -u)" != 0 ]; then
	echo "Not root: tests that need network namespaces, mounts or privileged ports are left out as well." >&2
fi
echo "The tests that need these packages are left out; each says so when it skips." >&2
