// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/modalias"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// listedImages are images that say what they have drivers for.
type listedImages struct {
	fixedImages
	text string
	bad  error
}

func (l listedImages) Image(string) (Image, error) {
	return Image{Digest: digest, Drivers: func() (*modalias.List, error) {
		if l.bad != nil {
			return nil, l.bad
		}
		return modalias.Parse(strings.NewReader(l.text))
	}}, nil
}

// machine is the chassis with functions on its bus: boot NIC and disk controller.
func machine() *chassis {
	c := whole()
	c.pci = []wire.PCI{{Address: "0000:00:03.0", Vendor: "15b3", Device: "101d", Class: "020000"}, {Address: "0000:00:05.0", Vendor: "144d", Device: "a80a", Class: "010802"}}
	c.diskPCI = "0000:00:05.0"
	return c
}

// TestImageWithoutDriver: an image that cannot boot on a node is refused before anything
// is erased, with the device; one that says nothing is not judged.
func TestImageWithoutDriver(t *testing.T) {
	t.Parallel()
	const nic, nvme = "alias pci:v000015B3d0000101Dsv*sd*bc*sc*i*\n", "alias pci:v*d*sv*sd*bc01sc08i02*\n"
	for name, c := range map[string]struct {
		images Images
		want   string // of the error; "": it is installed
	}{
		"all drivers":   {listedImages{text: nic + nvme}, ""},
		"no NIC":        {listedImages{text: nvme}, "image os has no driver for boot NIC 0000:00:03.0 (15b3:101d)"},
		"no disk":       {listedImages{text: nic}, "image os has no driver for the controller of disk vda 0000:00:05.0 (144d:a80a)"},
		"nothing":       {listedImages{text: "alias pci:v00008086d*sv*sd*bc*sc*i*\n"}, "boot NIC 0000:00:03.0 (15b3:101d), the controller of disk vda"},
		"damaged list":  {listedImages{bad: errors.New("unreadable")}, "drivers of image os: unreadable"},
		"older version": {fixedImages{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := machine()
			res, _ := bringUp(t, m, c.images, plan.Options{MaxErase: 1}, nil)
			if c.want == "" {
				if res.Outcome != state.RunDone || m.writes != 1 {
					t.Errorf("outcome %s, %d writes: %+v", res.Outcome, m.writes, res.Steps)
				}
				return
			}
			said := ""
			for _, s := range res.Steps {
				if s.Error != "" {
					said += s.Error + "\n"
				}
			}
			if m.writes != 0 || !strings.Contains(said, c.want) {
				t.Errorf("%d writes, and it says %q; want %q", m.writes, said, c.want)
			}
		})
	}
}

func TestMissingDrivers(t *testing.T) {
	t.Parallel()
	list, err := modalias.Parse(strings.NewReader("alias pci:v00008086d*sv*sd*bc*sc*i*\nmodule raid1\n"))
	if err != nil {
		t.Fatal(err)
	}
	hw := wire.Hardware{PCI: []wire.PCI{{Address: "0000:00:04.0", Vendor: "15b3", Device: "1021", Class: "020000"}, {Address: "0000:00:05.0", Vendor: "8086", Device: "2922", Class: "010601"}}}
	for name, c := range map[string]struct {
		change func(*inventory.Node)
		want   []string
	}{
		"rail of no fabric": {func(*inventory.Node) {}, nil},
		"rail":              {func(n *inventory.Node) { n.Hardware.NICs[1].Fabric = compute }, []string{"nic rail/0 of fabric compute at 0000:00:04.0 (15b3:1021)"}},
		"rail with a driver stack": {func(n *inventory.Node) {
			n.Hardware.NICs[1].Fabric = compute
			n.Drivers = []*inventory.Driver{{Block: inventory.Block{Kind: "doca"}}}
		}, nil},
		"RAID 1": {func(n *inventory.Node) { n.Disks.RAID = 1 }, nil},
		"XFS":    {func(n *inventory.Node) { n.Disks.Root.Filesystem = "xfs" }, []string{"XFS (module xfs)"}},
		"encrypted data": {func(n *inventory.Node) {
			n.Disks.Data = []inventory.FileSystem{{Name: "scratch", Encryption: inventory.EncryptionTPM2}}
		}, []string{"encrypted volumes (module dm-crypt)"}},
		"LVM":     {func(n *inventory.Node) { n.Disks.Groups = []inventory.VolumeGroup{{Name: "vg0"}} }, []string{"volume groups (module dm-mod)"}},
		"RAID 10": {func(n *inventory.Node) { n.Disks.RAID = 10 }, []string{"an array of RAID 10 (module raid10)"}},
	} {
		n := site().Nodes[0]
		c.change(n)
		if got := missingDrivers(list, n, hw, []wire.Disk{{Name: "sda", PCI: "0000:00:05.0"}}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

var compute = &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "compute"}}
