// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/nodecheck"
	"github.com/ironrail/ironrail/provision/agent/roce"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/rehearse/virtual/metal/metaltest"
)

// rails is the real code for rails on a kernel of a virtual node.
func rails(k *Kernel) roce.Node {
	return roce.Node{FS: sysfs.Of(k.FS()), Root: func() (rootfs.Root, error) { return k.Root(), nil }, Network: k, RDMA: k, QoS: k}
}

// The real code makes the rails of a node, finds them made, and makes them again
// after a boot, when the kernel has forgotten them.
func TestRails(t *testing.T) {
	for _, c := range []struct {
		name, soft, device, gid string
		index                   int
	}{
		{"hardware", "", "mlx5_1", "0000:0000:0000:0000:0000:ffff:0a4d:110b", 3},
		{"soft", "rxe", "rxe1", "0000:0000:0000:0000:0000:ffff:0a4d:110b", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hgx()
				h.NICs[1].SoftwareRDMA = c.soft
				h.NICs[1].Ports = []inventory.NICPort{{Rail: 0, PCI: "0000:18:00.0"}, {Rail: 1, PCI: "0000:40:00.0"}}
				if c.soft != "" {
					h.NICs[1].Model, h.NICs[1].HCA = "", false
				}
				n := BuildNode(&inventory.Node{Name: "n1", Hardware: h}, Options{})
				root := newRoot(n.options.Shared.image)
				k := n.Boot("6.1", "", root)
				p := wire.RoCEParams{MTU: 9000}
				for i, port := range h.NICs[1].Ports {
					p.Ports = append(p.Ports, wire.RoCEPort{Rail: i, PCI: port.PCI, Address: fmt.Sprintf("10.77.%d.11/24", 16+i), SoftwareRDMA: c.soft, Table: 100 + i})
				}
				if r := rails(k).Check(p); r.Conforms || r.Error != nil {
					t.Errorf("before: %+v", r)
				}
				r := rails(k).Apply(t.Context(), p)
				if !r.Conforms || r.Error != nil || len(r.Changed) == 0 {
					t.Fatalf("got %+v", r)
				}
				if s := r.Ports[1]; s.RDMADevice != c.device || s.GID != c.gid || s.GIDIndex != c.index || s.State != "ACTIVE" || s.ActiveMTU != 4096 {
					t.Errorf("got %+v", s)
				}
				if again := rails(k).Apply(t.Context(), p); !again.Conforms || len(again.Changed) != 0 {
					t.Errorf("again: %+v", again)
				}
				k = n.Boot("6.1", "", root)
				if r := rails(k).Check(p); r.Conforms || len(r.Problems) != 0 {
					t.Errorf("after a boot: %+v", r)
				}
				if r := rails(k).Up(t.Context()); !r.Conforms {
					t.Errorf("up: %+v", r)
				}
				n.SetLink("0000:40:00.0", Link{Down: true})
				if r := rails(k).Check(p); r.Conforms || !strings.Contains(fmt.Sprint(r.Ports[1].Problems), "no link") {
					t.Errorf("without a link: %+v", r)
				}
			})
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	k := BuildNode(hgxNode(), Options{}).Boot("6.1", "", nil)
	a := netip.MustParsePrefix("10.0.0.1/24")
	for range 2 {
		if err := k.SetAddress("eth0", a); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := k.Addresses("eth0"); err != nil || len(got) != 1 || k.DropAddress("eth0", a) != nil || k.DropAddress("eth0", a) != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, _ := k.Addresses("eth0"); len(got) != 0 || k.SetLink("eth0", 9999) == nil || k.SetLink("eth99", 1500) == nil || k.SetIPv4("eth0", "no_such", "1") == nil {
		t.Errorf("got %v, or an error is missing", got)
	}
}

// The real check of an installed node finds the marker on the disk in memory.
func TestNodeCheck(t *testing.T) {
	t.Parallel()
	n := BuildNode(hgxNode(), Options{})
	d := n.Disks()[0]
	if err := d.Fill(0, metaltest.MakeImage(5<<20, 1)); err != nil {
		t.Fatal(err)
	}
	h, err := n.Kernel().Opener(t.Context())("/dev/nvme0n1", disk.Shared)
	if err != nil {
		t.Fatal(err)
	}
	if err := disk.PutMarker(h, disk.Marker{Text: "n1 w1", State: disk.Configured, Digest: "sha256:ab"}); err != nil {
		t.Fatal(err)
	}
	s, ok := n.System()
	if !ok || s.Disk != d || s.Marker.Text != "n1 w1" || !n.Installed() {
		t.Fatalf("got %+v, %v", s, ok)
	}
	k := n.Boot("6.1", "", s.Root)
	r := nodecheck.Checker{
		FS: sysfs.Of(k.FS()), Open: k.Opener(t.Context()),
		Kernel:    func() (string, string, error) { return "n1", k.Release(), nil },
		Systemctl: func(context.Context, ...string) (string, error) { return "running\n", nil },
	}.Check(t.Context())
	if r.Marker != "n1 w1" || r.Install != "configured" || r.Digest != "sha256:ab" || r.BootID != k.BootID() || r.Kernel != "6.1" || r.Identity.Serial != "S1" {
		t.Errorf("got %+v", r)
	}
	first := k.BootID()
	if again := n.Boot("6.1", "", s.Root).BootID(); again == first || again == "" {
		t.Errorf("the next boot has id %q", again)
	}
	d.Wipe()
	if n.Installed() || n.Root() != nil {
		t.Error("a blank disk boots")
	}
}
