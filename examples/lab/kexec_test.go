// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/provision/install"
)

// TestKexec: the ramdisk starts the installed system of a machine with a BIOS and of one with
// UEFI by kexec_file_load; their firmware starts it once before they are tested.
func TestKexec(t *testing.T) {
	nodes := []string{"n1", "n2"}
	l := labtest.Up(t, labtest.Options{Name: "kexec", Machines: nodes, HCL: []labtest.Edit{
		{Old: "  boot         = \"bios\"\n", New: "  boot         = \"bios\"\n  kexec        = true\n"},
		{Old: "  boot         = \"uefi\"\n", New: "  boot         = \"uefi\"\n  kexec        = true\n"},
	}})
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	all := events(t, l)
	if n := strings.Count(all, "kexec: /vmlinuz is loaded"); n != len(nodes) {
		t.Errorf("a kernel is loaded on %d nodes", n)
	}
	for _, n := range nodes {
		if strings.Contains(all, "reset "+n+", which did not come up by kexec") || !strings.Contains(all, "restart "+n+" by its firmware") {
			t.Errorf("%s was not started by kexec and then by its firmware", n)
		}
		l.OnNode(n, "! grep ironrail.boot=kexec /proc/cmdline")
		if id := labtest.Fact(l, install.FirmwareFact, n); id != strings.TrimSpace(l.OnNode(n, "cat /proc/sys/kernel/random/boot_id")) {
			t.Errorf("%s: the record of its firmware's boot is %q", n, id)
		}
		if s := l.Stats(n); s.Boots.Net != 1 || s.Starts != 1 {
			t.Errorf("%s: %+v", n, s)
		}
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
}

// events are the events of a lab's site, as JSON.
func events(t *testing.T, l *labtest.Lab) string {
	t.Helper()
	files := os.DirFS(filepath.Join(l.State(), "events"))
	names, err := fs.Glob(files, "*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
