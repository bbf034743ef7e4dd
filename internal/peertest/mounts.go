// SPDX-License-Identifier: Apache-2.0

package peertest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// ownMounts is set in the environment of a program that OwnMounts has started anew.
const ownMounts = "IRONRAIL_TEST_OWN_MOUNTS"

// OwnMounts runs the tests of a package in a mount namespace of their own: it is what
// their TestMain calls. In a common one, a namespace that another test makes meanwhile
// keeps a copy of each mount, so that umount(8) neither writes the file system out nor
// frees its identifier. Without root nothing is mounted, and nothing changes.
func OwnMounts(m *testing.M) {
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Geteuid() != 0 || os.Getenv(ownMounts) != "" || exec.Command(unshare, "--mount", "true").Run() != nil { //nolint:noctx // there is no test yet
		os.Exit(m.Run())
	}
	own, err := os.Executable()
	if err == nil {
		err = syscall.Exec(unshare, append([]string{"unshare", "--mount", "--propagation", "slave", own}, os.Args[1:]...), append(os.Environ(), ownMounts+"=1"))
	}
	panic(err)
}
