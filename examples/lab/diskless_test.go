// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// disklessHCL makes the nodes of site.hcl keep their system in memory.
func disklessHCL() []labtest.Edit {
	return []labtest.Edit{
		{Old: "image \"debian\" \"os\" {\n", New: "image \"diskless\" \"os\" {\n  os       = \"debian\"\n"},
		{Old: "  disks      = disk_layout.os\n", New: ""},
		{Old: "size = \"1GiB\"", New: "size = \"3GiB\"", All: true},
		{Old: `["no_timer_check"]`, New: `["no_timer_check", "panic=30"]`},
	}
}

// TestDiskless: a machine with a BIOS and one with UEFI keep their systems in memory, from power-off
// to accepted, and no byte of their disks is written. One that loses its power is brought back by
// a rebuild.
func TestDiskless(t *testing.T) {
	nodes := []string{"n1", "n2"}
	l := labtest.Up(t, labtest.Options{Name: "diskless", Machines: nodes, Memory: 3072, HCL: disklessHCL()})
	for _, n := range nodes {
		l.Fill(n, labtest.SystemDisk, `mkfs.ext4 -q -F -L somebodys "$D"`)
	}
	same := l.Unchanged("n1/"+labtest.SystemDisk, "n2/"+labtest.SystemDisk)
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	if p := l.Ironrail("plan"); strings.Contains(p.Stdout, "ERASES") {
		t.Errorf("the plan erases: %s", p)
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	for _, n := range nodes {
		t.Logf("%s:\n%s", n, l.OnNode(n, "findmnt -no FSTYPE,SIZE,USED / ; cat /etc/fstab /proc/cmdline; free -m; systemctl --failed --no-legend; systemd-analyze; ip -br address"))
		for _, look := range []string{
			`test "$(findmnt -no FSTYPE /)" = overlay && test "$(hostname)" = ` + n,
			`grep -w 'panic=30' /proc/cmdline && grep -w no_timer_check /proc/cmdline`,
			`! systemctl --failed --no-legend | grep . && test "$(systemctl is-system-running)" = running`,
			`! grep -q ' /dev/vd' /proc/mounts && ! test -e /ironrail/boot.json`,
			`touch /usr/bin/written && ! test -e /init`,
		} {
			l.OnNode(n, look)
		}
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
	l.PowerOff("n2")
	l.Want(labtest.ExitDone, l.Ironrail("rebuild", "n2", "--auto-approve", "--jobs-unknown"))
	l.Accepted(nodes...)
	l.OnNode("n2", `! test -e /usr/bin/written && test "$(findmnt -no FSTYPE /)" = overlay`)
	l.Untouched(nodes...)
	for _, n := range nodes {
		l.PowerOff(n)
	}
	same()
}
