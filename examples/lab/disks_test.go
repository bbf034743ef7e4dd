// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/install"
)

// The slots of a disk beside the system disk, which is in 0000:00:05.0.
const (
	lowerSlot  = "0000:00:02.0"
	systemSlot = "0000:00:05.0"
	higherSlot = "0000:00:07.0"
)

// gptWithExt4 is a data disk as most are: a table, and a file system in its first
// partition.
const gptWithExt4 = `sgdisk -n 1:0:0 -c 1:data "$D" && mke2fs -q -t ext4 -L data -E offset=1048576 "$D" 1G`

// withData gives n1 and n2 a data disk each, in a lower slot than the system disk,
// and names the system disk in the site.
func withData(o labtest.Options) labtest.Options {
	o.HCL = append(o.HCL, labtest.Edit{Old: "    serial   = each.value.serial\n", New: "    serial   = each.value.serial\n    install_disk = each.value.serial # in the lab the chassis and its disk have one\n"})
	for _, n := range []string{"n1", "n2"} {
		o.Disks = append(o.Disks, labtest.Disk{Machine: n, Name: "data", PCI: lowerSlot, Serial: "DATA000" + strings.TrimPrefix(n, "n"), Size: "8GiB"})
	}
	return o
}

// fillData puts data on these disks, and returns what fails the test when a byte of
// it has changed.
func fillData(l *labtest.Lab) (unchanged func()) {
	for _, n := range []string{"n1", "n2"} {
		l.Fill(n, "data", gptWithExt4)
	}
	return l.Unchanged("n1/data", "n2/data")
}

// layout is a machine with a data disk beside its system disk, both of which fit the
// hardware block.
type layout struct {
	name, node, serial, slot, size string
	fill                           string // makes the data; empty: a member of an array
}

// layouts are the ways in which a data disk can be taken for the system disk.
func layouts() []layout {
	return []layout{
		{"lower", "n4", "DATA0004", lowerSlot, "8GiB", gptWithExt4},
		{"higher", "n5", "DATA0005", higherSlot, "8GiB", gptWithExt4},
		{"lost table", "n6", "DATA0006", lowerSlot, "8GiB",
			gptWithExt4 + ` && dd if=/dev/zero of="$D" bs=1M count=1 conv=notrunc && dd if=/dev/zero of="$D" bs=1M seek=8191 count=1 conv=notrunc`},
		{"array member", "n7", "DATA0007", lowerSlot, "8GiB", ""},
		{"same size and model", "n8", "DATA0008", lowerSlot, "6GiB", `mkfs.xfs -q -L data "$D"`},
		{"exchanged", "n9", "DATA0009", higherSlot, "8GiB", gptWithExt4},
	}
}

// nodesOf are the nodes of layouts.
func nodesOf(all []layout) (names []string) {
	for _, y := range all {
		names = append(names, y.node)
	}
	return names
}

// bareSite leaves of the site what erases disks: no fabric, drivers, tests, scheduler.
func bareSite(more ...labtest.Edit) []labtest.Edit {
	rail := "    fabric        = fabric.rail\n    software_rdma = \"rxe\"%s\n    ports         = [{ rail = 0, pci = \"0000:00:04.0\", panel = \"rail 0\" }]\n"
	nic := func(comment string) labtest.Edit {
		return labtest.Edit{Old: "  nic \"rail\" {\n" + strings.Replace(rail, "%s", comment, 1) + "  }\n", All: true}
	}
	return append([]labtest.Edit{
		{Old: "max_erase = 2", New: "max_erase = 6"},
		{Old: "= \"3min\"", New: "= \"15min\"", All: true}, // boot_timeout: six machines share the host
		nic(" # RDMA in the kernel, over an ordinary NIC"), nic(""),
		{Old: "  drivers    = [driver.rdma]\n  validation = validation.lab\n  handover   = handover.lab\n"},
		{Old: "fabric \"roce\" \"rail\" {\n  rails      = 1\n  topology   = \"explicit\"\n  addressing = \"subnet\"\n  cidr       = \"10.77.16.0/24\"\n  mtu        = 1500\n}\n"},
	}, more...)
}

// TestDisks: no byte of a disk that is not the system disk is ever changed, however
// the disks of a machine lie, and a refusal names both. The nodes are new; then one
// of them is installed, and its disks change places.
func TestDisks(t *testing.T) {
	all := layouts()
	var disks []labtest.Disk
	var every, data []string
	for _, y := range all {
		disks = append(disks, labtest.Disk{Machine: y.node, Name: "data", PCI: y.slot, Serial: y.serial, Size: y.size})
		every, data = append(every, y.node+"/"+labtest.SystemDisk, y.node+"/data"), append(data, y.node+"/data")
	}
	l := labtest.Up(t, labtest.Options{Name: "disks", Machines: nodesOf(all), HCL: bareSite(), Disks: disks})
	for _, y := range all {
		if y.fill == "" {
			l.MakeArray(y.node, "data")
			continue
		}
		l.Fill(y.node, "data", y.fill)
	}
	names := strings.Join(nodesOf(all), ",")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"apply", []string{"apply", "--auto-approve"}},
		{"replace", []string{"apply", "--auto-approve", "--replace", names}},
		{"rebuild", append([]string{"rebuild", "--auto-approve"}, nodesOf(all)...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := l.For(t)
			unchanged := l.Unchanged(every...)
			before := 0
			if l.HasState() {
				before = len(l.Journal())
			}
			l.Want(labtest.ExitFailed, l.Ironrail(c.args...))
			unchanged()
			for _, y := range all {
				l.Refused(y.node, systemSerial(y.node), y.serial)
			}
			lookedAnew(t, l.Journal()[before:], nodesOf(all))
		})
	}
	t.Run("exchanged", func(t *testing.T) { exchanged(t, l.For(t), disks, data) })
}

// systemSerial is the serial number of a machine's system disk.
func systemSerial(node string) string { return "LAB000" + strings.TrimPrefix(node, "n") }

// lookedAnew fails the test unless each node's disks were looked at in these records,
// and none was erased.
func lookedAnew(t *testing.T, records []state.Record, nodes []string) {
	t.Helper()
	for _, n := range nodes {
		if !slices.ContainsFunc(records, func(r state.Record) bool {
			return r.Kind == state.StepStarted && r.Step == string(install.StepOf(n, install.Inspect))
		}) {
			t.Errorf("the disks of %s were not looked at", n)
		}
	}
	for _, r := range records {
		if r.Kind == state.EffectIntent && strings.HasSuffix(r.Step, "/install.write") {
			t.Errorf("the journal has the intent to erase: %s", r.Step)
		}
	}
}

// The disk block of every kind of machine, and the same in one slot only.
const (
	anySlot = "    type  = \"virtio\"\n    count = 1\n"
	oneSlot = "    type  = \"virtio\"\n    count = 1\n    pci   = \"" + systemSlot + "\"\n"
)

// exchanged installs n9 with its disk block bound to a slot; then the data disk is in
// that slot and the system disk in the other.
func exchanged(t *testing.T, l *labtest.Lab, disks []labtest.Disk, data []string) {
	const node, serial = "n9", "DATA0009"
	l.Edit(labtest.Edit{Old: anySlot, New: oneSlot, All: true})
	unchanged := l.Unchanged(data...)
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve", "--target", node))
	unchanged()
	l.Accepted(node)
	installedOn(t, l, node, systemSlot)
	firmwareStarted(t, l, node)
	l.PowerOff(node)
	moved := slices.DeleteFunc(slices.Clone(disks), func(d labtest.Disk) bool { return d.Machine == node })
	l.SetDisks(append(moved, labtest.Disk{Machine: node, Name: labtest.SystemDisk, PCI: higherSlot},
		labtest.Disk{Machine: node, Name: "data", PCI: systemSlot, Serial: serial, Size: "8GiB"}))

	all := l.Unchanged(append(data, node+"/"+labtest.SystemDisk)...)
	for _, args := range [][]string{{"apply", "--auto-approve", "--target", node, "--replace", node}, {"rebuild", node, "--auto-approve"}} {
		l.Want(labtest.ExitFailed, l.Ironrail(args...))
		all()
		l.Refused(node, systemSerial(node), serial)
	}
	// Without the slot both disks fit; the disk of the last install is taken.
	l.Edit(labtest.Edit{Old: oneSlot, New: anySlot, All: true})
	l.Want(labtest.ExitDone, l.Ironrail("rebuild", node, "--auto-approve"))
	unchanged()
	l.Accepted(node)
	installedOn(t, l, node, higherSlot)
}

// efiVariable prints the 16-bit numbers of a boot variable of UEFI firmware (UEFI
// 2.10, 3.3), behind the four bytes of its attributes.
const efiVariable = "od -An -tx2 -v -j4 /sys/firmware/efi/efivars/%s-8be4df61-93ca-11d2-aa0d-00e098032b8c"

// firmwareStarted fails the test unless the boot order of a UEFI node, and the entry
// that started its system, are recorded as the firmware itself has them, and that
// entry is of the disk.
func firmwareStarted(t *testing.T, l *labtest.Lab, node string) {
	t.Helper()
	o := labtest.Fact(l, install.SystemFact, node).BootOrder
	if o == nil {
		t.Errorf("%s: no boot order is recorded", node)
		return
	}
	t.Logf("%s: boot order %+v", node, *o)
	var order []string
	for _, e := range o.Entries {
		order = append(order, fmt.Sprintf("%04x", e.Number))
	}
	for name, want := range map[string]string{"BootOrder": strings.Join(order, " "), "BootCurrent": fmt.Sprintf("%04x", o.Current)} {
		if is := strings.Join(strings.Fields(l.OnNode(node, fmt.Sprintf(efiVariable, name))), " "); is != want {
			t.Errorf("%s: %s is %q on the node, recorded as %q", node, name, is, want)
		}
	}
	if e, ok := o.Entry(o.Current); !ok || e.MAC != "" {
		t.Errorf("%s was not started from a disk: entry %+v", node, e)
	}
}

// installedOn fails the test unless a node is recorded as installed on its system
// disk, in a slot, and runs from it, as it says itself and as its kernel says.
func installedOn(t *testing.T, l *labtest.Lab, node, slot string) {
	t.Helper()
	var d wire.Disk = labtest.Fact(l, install.DiskFact, node)
	if d.Serial != systemSerial(node) || d.PCI != slot {
		t.Errorf("%s is recorded on disk %s (serial %s) at %s, want %s at %s", node, d.Name, d.Serial, d.PCI, systemSerial(node), slot)
	}
	if sys := labtest.Fact(l, install.SystemFact, node); sys.Root == nil || sys.Root.Serial != systemSerial(node) {
		t.Errorf("%s runs from %+v, want disk %s", node, sys.Root, systemSerial(node))
	}
	l.OnNode(node, `test "$(cat "/sys/block/$(lsblk -ndo PKNAME "$(findmnt -no SOURCE /)")/serial")" = `+systemSerial(node))
}
