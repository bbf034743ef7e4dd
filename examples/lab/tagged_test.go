// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// TestTagged: a machine at a port that is a tagged member of the boot network's VLAN, and of no other, is
// brought to accepted, by the iPXE that its image brings; its own address is on the VLAN interface, and it starts again from its disk.
func TestTagged(t *testing.T) {
	l := labtest.Up(t, labtest.Options{Name: "tagged", Machines: []string{"n13"}, HCL: []labtest.Edit{
		labtest.AddHardware("lab-tagged", `  boot_timeout = "5min"
  console {
    port = "ttyS0"
    baud = 115200
  }
`),
		{Old: "  cidr = \"10.77.0.0/24\"\n", New: "  cidr = \"10.77.0.0/24\"\n  vlan = 30\n"},
		{Old: "boot         = \"bios\"\n  loader       = \"undionly.kpxe\"", New: "boot         = \"uefi\""},
		{Old: "boot         = \"uefi-http\"", New: "boot         = \"uefi\""},
	}})
	l.Want(labtest.ExitDone, l.Outside("image", "build")) // with an iPXE that tags, which this controller has not
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted("n13")
	got := l.OnNode("n13", "ip -br -4 address show up | grep -v '^lo '; ip route show default; head -1 /proc/net/vlan/vlan30; networkctl is-online 2>&1 || true; cat /etc/systemd/network/10-ironrail-boot.network")
	if t.Logf("%s", got); !strings.Contains(got, "vlan30@") || !strings.Contains(got, "10.77.0.") || !strings.Contains(got, "VID: 30") || strings.Contains(got, "Address=10.77.0.") {
		t.Errorf("the node says\n%s", got)
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
}

// TestUntaggedPort: a machine at a port that gives the VLAN of the boot network untagged, whose firmware
// sets no tag, boots up to the ramdisk, which is not heard with the tag; it reaches the controller without it,
// and the port is named.
func TestUntaggedPort(t *testing.T) {
	l := labtest.Up(t, labtest.Options{Name: "untagged", Machines: []string{"n2"}, HCL: []labtest.Edit{
		{Old: "  cidr = \"10.77.0.0/24\"\n", New: "  cidr = \"10.77.0.0/24\"\n  vlan = 30\n"},
		{Old: "boot         = \"bios\"\n  loader       = \"undionly.kpxe\"", New: "boot         = \"uefi\""},
		{Old: "boot         = \"uefi-http\"", New: "boot         = \"uefi\""},
	}})
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	const port = "its switch port gives VLAN 30 untagged"
	if got := l.Ironrail("apply", "--auto-approve"); got.Code == labtest.ExitDone || !strings.Contains(got.Stdout+got.Stderr, port) {
		t.Errorf("apply: %s", got)
	}
	if got := l.Ironrail("why", "n2"); !strings.Contains(got.Stdout, port) {
		t.Errorf("why: %s", got)
	}
	l.Untouched("n2")
}
