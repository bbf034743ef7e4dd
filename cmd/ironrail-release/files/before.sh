#!/bin/sh
# Makes the user of the service before files are given to it. It owns the sites in
# /var/lib/ironrail, which stay when the package is removed.
set -e
if ! getent group ironrail >/dev/null; then
	groupadd --system ironrail
fi
if ! getent passwd ironrail >/dev/null; then
	useradd --system --gid ironrail --home-dir /var/lib/ironrail --no-create-home --shell /usr/sbin/nologin --comment "ironrail" ironrail
fi
