// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// containerScript makes a container image with programs of others alone: two layers, of
// which the second takes away what a builder of containers does not need, the initrd
// among it. $1 is the folder to work in, $2 the release, $3 the layout to write.
const containerScript = `set -eu
cd "$1"
umoci init --layout made
umoci new --image made:os
umoci unpack --image made:os bundle
rmdir bundle/rootfs
mmdebstrap --quiet --mode=root --variant=minbase --include=linux-image-amd64,initramfs-tools,systemd-sysv,udev,kmod,dbus,iproute2,openssh-server,chrony,ca-certificates,e2fsprogs,tzdata,zstd,mdadm,xfsprogs --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' "$2" bundle/rootfs
umoci repack --refresh-bundle --image made:os bundle
rm bundle/rootfs/boot/initrd.img-* bundle/rootfs/etc/hostname
rm -r bundle/rootfs/usr/share/man
printf '#!/bin/sh\nexit 101\n' >bundle/rootfs/usr/sbin/policy-rc.d
chmod 755 bundle/rootfs/usr/sbin/policy-rc.d
umoci repack --image made:os bundle
umoci gc --layout made
rm -rf bundle
mv made "$3"
`

// ContainerImage makes a container image of a release of Debian, as an OCI layout, with
// programs that are not ours, and returns the source of an image block. It is made once
// for all tests and kept beside the lab.
func (l *Lab) ContainerImage(release string) (source string) {
	l.t.Helper()
	layout := l.madeOnce("container", release, "", containerScript, "")
	var index struct {
		Manifests []struct {
			Digest string `json:"digest"`
		} `json:"manifests"`
	}
	b, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err == nil {
		err = json.Unmarshal(b, &index)
	}
	if err != nil || len(index.Manifests) != 1 {
		l.t.Fatalf("the layout of others: %v, %d images", err, len(index.Manifests))
	}
	return "oci-layout:" + layout + ":os@" + index.Manifests[0].Digest
}
