// SPDX-License-Identifier: Apache-2.0

package modalias

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
)

// system is a kernel with a NIC of Mellanox and NVMe as modules, and a disk controller
// that is built in.
func system() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const dir = "lib/modules/6.1.0-1-amd64/"
	return fstest.MapFS{
		dir + "modules.alias": file("# Aliases\nalias pci:v000015B3d0000101Dsv*sd*bc*sc*i* mlx5_core\nalias pci:v*d*sv*sd*bc01sc08i02* nvme\nalias pci:v00001AF4d*sv*sd*bc*sc*i* virtio_pci\n" +
			"alias virtio:d00000001v* virtio_net\nalias usb:v1234 x\nalias pci:v00001000d00000014sv00001028sd00001FD4bc*sc*i* megaraid_sas\nalias md-raid1 raid1\n"),
		dir + "modules.dep":             file("kernel/drivers/net/mlx5_core.ko.xz: kernel/x.ko\nkernel/drivers/md/raid1.ko:\n"),
		dir + "modules.builtin":         file("kernel/drivers/ata/ahci.ko\nkernel/drivers/ata/sata_promise.ko\nkernel/drivers/infiniband/core/ib-umad.ko\n"),
		dir + "modules.builtin.modinfo": file("ahci.license=GPL\x00ahci.alias=pci:v*d*sv*sd*bc01sc06i01*\x00"),
	}
}

func listOf(t *testing.T, root fstest.MapFS) *List {
	t.Helper()
	var b bytes.Buffer
	if err := Collect(&b, root, "6.1.0-1-amd64"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "usb") {
		t.Errorf("kept %q", b.String())
	}
	l, err := Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestHasDriver(t *testing.T) {
	t.Parallel()
	l := listOf(t, system())
	for name, c := range map[string]struct {
		f    Function
		want bool
	}{
		"module":                       {Function{"15b3", "101d", "020000", "", ""}, true},
		"another device":               {Function{"15b3", "1021", "020000", "", ""}, false},
		"another vendor":               {Function{"14e4", "101d", "020000", "", ""}, false},
		"by class":                     {Function{"144d", "a80a", "010802", "", ""}, true},
		"built in":                     {Function{"8086", "2922", "010601", "", ""}, true},
		"another class":                {Function{"8086", "2922", "010400", "", ""}, false},
		"virtio NIC":                   {Function{"1af4", "1041", "020000", "", ""}, true},
		"first virtio NIC":             {Function{"1af4", "1000", "020000", "", ""}, true},
		"virtio disk without driver":   {Function{"1af4", "1042", "010000", "", ""}, false},
		"first virtio disk":            {Function{"1af4", "1001", "010000", "", ""}, false},
		"board of the alias":           {Function{"1000", "0014", "010400", "pci:v00001000d00000014sv00001028sd00001FD4bc01sc04i00", ""}, true},
		"another board":                {Function{"1000", "0014", "010400", "pci:v00001000d00000014sv00001028sd00000001bc01sc04i00", ""}, false},
		"board that nobody knows":      {Function{"1000", "0014", "010400", "", ""}, true},
		"function that nobody knows":   {Function{}, true},
		"another device of a module":   {Function{"15b3", "1021", "020000", "", "mlx5_core"}, false},
		"device of what is built in":   {Function{"1af4", "1041", "020000", "", "virtio-pci"}, true},
		"old device of a built-in one": {Function{"105a", "3f20", "010400", "", "sata-promise"}, true},
		"modalias in another spelling": {Function{"15b3", "101d", "020000", "nonsense", ""}, true},
	} {
		if got := l.HasDriver(c.f); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for module, want := range map[string]bool{"raid1": true, "raid10": false, "ib_umad": true, "ib-umad": true, "mlx5_core": true} {
		if l.HasModule(module) != want {
			t.Errorf("%s: %v", module, !want)
		}
	}
}

func TestDamagedLists(t *testing.T) {
	t.Parallel()
	if _, err := Parse(strings.NewReader("module x\n")); err == nil {
		t.Error("a list without drivers is taken")
	}
	root := system()
	delete(root, "lib/modules/6.1.0-1-amd64/modules.alias")
	if err := Collect(&bytes.Buffer{}, root, "6.1.0-1-amd64"); err == nil {
		t.Error("a kernel without aliases is taken")
	}
	old := system()
	delete(old, "lib/modules/6.1.0-1-amd64/modules.builtin.modinfo")
	if l := listOf(t, old); l.HasDriver(Function{"8086", "2922", "010601", "", ""}) {
		t.Error("what is not in the list is there")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("alias pci:v000015B3d0000101Dsv*sd*bc*sc*i*\nmodule x\nalias virtio:d00000001v*\n")
	f.Fuzz(func(_ *testing.T, text string) {
		if l, err := Parse(strings.NewReader(text)); err == nil {
			l.HasDriver(Function{"15b3", "101d", "020000", text, ""})
		}
	})
}

// TestBuiltIn: of a kernel whose drivers for virtio are built in, and name no devices, a
// node with them is not refused; neither is it by a list of a version that did not keep
// what is built in.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	nic, disk := Function{"1af4", "1000", "020000", "", "virtio-pci"}, Function{"1af4", "1001", "010000", "", "virtio-pci"}
	const pci = "alias pci:v00008086d*sv*sd*bc02sc*i*\n"
	for text, want := range map[string][2]bool{
		pci + "alias virtio:d00000001v*\nbuiltin virtio_blk\nbuiltin virtio_pci\nmodule virtio_blk\nmodule virtio_pci\n": {true, true},
		pci + "alias virtio:d00000001v*\nbuiltin virtio_pci\nmodule virtio_pci\n":                                        {true, false},
		pci + "alias virtio:d00000001v*\nbuiltin x\nmodule virtio_pci\n":                                                 {false, false},
		pci + "alias virtio:d00000001v*\nalias virtio:d00000002v*\nmodule virtio_pci\n":                                  {true, true},
		pci + "alias virtio:d00000001v*\nalias virtio:d00000002v*\nmodule x\n":                                           {false, false},
	} {
		l, err := Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{l.HasDriver(nic), l.HasDriver(disk)}; got != want {
			t.Errorf("%q: NIC and disk %v, want %v", text, got, want)
		}
	}
}
