// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// mixed gives the site a machine of arm64 beside that of x86, with an image and a role of
// its own. Both have one release: their Open MPI runs one job.
func mixed() []labtest.Edit {
	const role, nodes = "role \"worker\" {\n", "  node \"n\" {\n    for_each = { for m in local.machines : m.name => m }\n"
	return []labtest.Edit{
		{Old: "\"bookworm\"", New: "\"trixie\""},
		labtest.AddHardware("lab-arm64", "  arch         = \"arm64\"\n  boot_timeout = \"10min\"\n"),
		{Old: "disk_layout \"os\" {\n", New: "image \"debian\" \"grace\" {\n  arch     = \"arm64\"\n  release  = \"trixie\"\n  packages = [\"openssh-server\", \"chrony\"]\n}\n\ndisk_layout \"os\" {\n"},
		{Old: role, New: `role "grace" {
  bmc        = bmc.sim
  image      = image.grace
  disks      = disk_layout.os
  host       = host.lab
  drivers    = [driver.rdma]
  validation = validation.lab
  handover   = handover.lab
}

` + role},
		{Old: nodes, New: `  node "grace" {
    for_each = { for m in local.machines : m.name => m if m.hardware == "lab-arm64" }
    name     = each.key
    role     = role.grace
    hardware = hardware[each.value.hardware]
    unit     = tonumber(each.value.unit)
    serial   = each.value.serial
    uuid     = each.value.uuid
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    address  = cidrhost(network.boot.cidr, 10 + tonumber(trimprefix(each.key, "n")))
    bmc {
      address = each.value.bmc_address
    }
  }
` + strings.Replace(nodes, "=> m }", "=> m if m.hardware != \"lab-arm64\" }", 1)},
	}
}

// TestMixed: one apply takes a machine of x86 and one of arm64 from power-off to
// accepted, from a controller of x86, with a pair test and an all-reduce of the two. The
// initrd of the latter is made by the machine.
func TestMixed(t *testing.T) {
	nodes := []string{"n2", "n10"}
	l := labtest.Up(t, labtest.Options{Name: "mixed", Machines: nodes, HCL: mixed()})
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	for node, want := range map[string]string{"n2": "x86_64\n4096\n", "n10": "aarch64\n4096\n"} {
		got := l.OnNode(node, `uname -m; getconf PAGESIZE; cat /etc/debian_version; ls -l /boot /initrd.img; systemctl --failed --no-legend; cat /proc/cmdline; efibootmgr -v || true`)
		if t.Logf("%s:\n%s", node, got); !strings.HasPrefix(got, want) {
			t.Errorf("%s: want %q first", node, want)
		}
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
}
