// SPDX-License-Identifier: Apache-2.0

package peertest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// base are packages that every Debian has, and those that the packages of the lab's
// list bring along.
var base = map[string]bool{"apt": true, "bash": true, "dash": true, "dpkg": true, "mount": true, util: true, "libumad2sim0": true, "slurm-client": true}

// TestPackagesAreInstalled: what Need tells to install, `make test-setup` installs.
func TestPackagesAreInstalled(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../../examples/lab/packages.txt")
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			installed[f[0]] = true
		}
	}
	for program, pkg := range packages {
		if !installed[pkg] && !base[pkg] {
			t.Errorf("%s: package %s is not in examples/lab/packages.txt", program, pkg)
		}
		if _, twice := optional[program]; twice {
			t.Errorf("%s is both required and optional", program)
		}
	}
}

// TestMissing runs a test that needs a program which is not there, in processes of
// their own.
func TestMissing(t *testing.T) {
	t.Parallel()
	if os.Getenv("PEERTEST_CHILD") != "" {
		os.Setenv("PATH", t.TempDir())
		Need(t, os.Getenv("PEERTEST_CHILD"))
		return
	}
	for _, c := range []struct{ program, peers, want string }{
		{"chromium", "", "--- SKIP"}, {"chromium", required, "--- FAIL"}, {"kubeadm", required, "--- SKIP"}, {"nothere", "", "--- FAIL"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMissing$", "-test.v")
		cmd.Env = append(os.Environ(), "PEERTEST_CHILD="+c.program, "IRONRAIL_PEERS="+c.peers)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), c.want) || (err != nil) != (c.want == "--- FAIL") {
			t.Errorf("%s with %q: %v, want %s\n%s", c.program, c.peers, err, c.want, out)
		}
	}
}
