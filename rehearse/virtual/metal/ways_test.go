// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"io/fs"
	"path"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestWays: a way that is remembered leads where looking step by step does, also on
// a node that lost a function since, and on others of its block.
func TestWays(t *testing.T) {
	t.Parallel()
	n := BuildNode(&inventory.Node{Name: "n1", Hardware: hgx(), BootMAC: bootMAC}, Options{})
	k := n.Boot("6.1.0-56-amd64", "", nil)
	slow := view{kernel: k, lookup: k.lookup, names: k.names}
	compare := func(when string) (links int) {
		for name, f := range n.shape.tree.files {
			if f.link == "" {
				continue
			}
			links++
			below := []string{name, name + "/none"}
			if list, err := fs.ReadDir(slow, name); err == nil {
				for _, e := range list {
					below = append(below, path.Join(name, e.Name()))
				}
			}
			for _, at := range below {
				for _, last := range []bool{true, false} {
					wantName, want, wantErr := slow.find("open", at, last)
					name, f, err := k.FS().(view).find("open", at, last)
					if name != wantName || f != want || (err == nil) != (wantErr == nil) {
						t.Errorf("%s: %s (last %v): got %q %p %v, want %q %p %v", when, at, last, name, f, err, wantName, want, wantErr)
					}
				}
			}
		}
		return links
	}
	if links := compare("whole"); links < 20 {
		t.Fatalf("only %d links compared", links)
	}
	if !n.RemovePCI(n.shape.functions[n.shape.ports[0].function].address) {
		t.Fatal("nothing was removed")
	}
	compare("without a NIC")
}
