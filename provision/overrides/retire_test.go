// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"net/netip"
	"testing"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// TestDecommissionWithSecureBoot: the image whose last nodes with Secure Boot leave has signed loaders
// until they have left, and the files stay as they were loaded.
func TestDecommissionWithSecureBoot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secure bool   // the hardware of the node that leaves
		image  string // that the node had
		want   int    // images whose ramdisk it may boot
		signed bool
	}{
		"with Secure Boot":             {true, "os", 1, true},
		"without":                      {false, "os", 2, false},
		"of an image that is gone":     {true, "gone", 0, false},
		"of a state that has no image": {true, "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := state.NewMemory()
			fence, err := store.Claim(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			d := Declared{Node: "n9", Hardware: "h", Image: c.image, Network: "boot", BootMAC: addr.MAC{2, 0, 0, 0, 0, 9}, Address: netip.MustParseAddr("192.0.2.9")}
			put, err := state.PutOf(state.Key{Kind: declaredKind, Name: "n9"}, d)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Append(t.Context(), fence, state.Batch{Puts: []state.Put{put}}); err != nil {
				t.Fatal(err)
			}
			os := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Arch: inventory.AMD64}
			other := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "other"}, Arch: inventory.AMD64}
			files := &inventory.Inventory{Images: []*inventory.Image{other, os}, Hardware: []*inventory.Hardware{{Name: "h", SecureBoot: c.secure}},
				Networks: []*inventory.Network{{Name: "boot"}}, Nodes: []*inventory.Node{{Name: "n1", Image: os}}}
			got, err := Read(t.Context(), store, files, nil, Request{Decommission: []string{"n9"}})
			if err != nil {
				t.Fatal(err)
			}
			n, _ := got.Inv.Node("n9")
			if list := install.RamdiskImages(got.Inv, n); len(list) != c.want || c.signed && list[0].Name != "os" {
				t.Errorf("it may boot %d images, want %d", len(list), c.want)
			}
			stays, _ := got.Inv.Node("n1")
			if stays.Image.SecureBoot != c.signed || os.SecureBoot || other.SecureBoot || got.Files.Nodes[0].Image != os {
				t.Errorf("signed: %v, of the files %v, of another image %v", stays.Image.SecureBoot, os.SecureBoot, other.SecureBoot)
			}
		})
	}
}
