// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
)

// ubuntuPackages are those that the lab's nodes are made of and have installed, with what
// disk layouts need.
const ubuntuPackages = "apt ca-certificates chrony dbus e2fsprogs initramfs-tools iproute2 kmod netplan.io openssh-server systemd systemd-sysv tzdata udev zstd mdadm xfsprogs lvm2 sudo unattended-upgrades " +
	"rdma-core ibverbs-utils perftest openmpi-bin python3-mpi4py"

// UbuntuArchive makes and serves, as long as the test runs, an archive that looks like
// Ubuntu's and has the packages of a release of Debian, and returns its address and its
// public key. as is the codename and the number of the release that it says to be, such as
// noble:24.04. The archive is kept beside the lab for all tests.
func (l *Lab) UbuntuArchive(release, as string) (url, key string) {
	l.t.Helper()
	script, err := os.ReadFile(filepath.Join(l.source(), "..", "..", "images", "ubuntu", "testdata", "archive.sh"))
	if err != nil {
		l.t.Fatal(err)
	}
	made := l.madeOnce("ubuntu-like", release, "", string(script), as+" "+ubuntuPackages)
	public, err := os.ReadFile(filepath.Join(made, "key.asc"))
	if err != nil {
		l.t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(made)))
	l.t.Cleanup(server.Close)
	return server.URL, string(public)
}
