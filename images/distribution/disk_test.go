// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestOfSystem: a system is known by its os-release, rebuilds as what they are rebuilds of.
func TestOfSystem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id, version string
		want        string
		taken       bool
	}{
		{"debian", "12", "Debian 12", true}, {"ubuntu", "24.04", "Ubuntu 24.04", true},
		{"rocky", "9.4", "RHEL 9", true}, {"almalinux", "9.5", "RHEL 9", true}, {"rhel", "9.6", "RHEL 9", true},
		{"rocky", "8.10", "RHEL 8", false}, {"rhel", "10.0", "RHEL 10", false},
		{"arch", "1", "", false}, {"rocky", "", "", false}, {"", "", "", false},
	} {
		r, ok := OfSystem(map[string]string{"ID": c.id, "VERSION_ID": c.version})
		f, _ := Find(r.Family)
		if ok != (c.want != "") || ok && r.String() != c.want || f.Disk.Takes(r) != c.taken {
			t.Errorf("%s %s is %q, known %v, taken %v", c.id, c.version, r, ok, f.Disk.Takes(r))
		}
	}
}

// TestOfDisk: what a system has to have, and gets, follows from what its block says.
func TestOfDisk(t *testing.T) {
	t.Parallel()
	if OfDisk(nil) != nil || OfDisk(&inventory.Image{Block: inventory.Block{Kind: "oci"}}) != nil {
		t.Error("it is known of an image that does not say it")
	}
	for _, i := range []*inventory.Image{{OS: RHEL}, {Block: inventory.Block{Kind: RHEL}, Release: "9"}} {
		if d := OfDisk(i); d == nil || d.Drivers || !d.Relabels || !d.Entries {
			t.Errorf("%+v", d)
		}
	}
	if d := OfDisk(&inventory.Image{OS: Ubuntu}); d == nil || !d.Drivers || d.Relabels || d.Entries {
		t.Errorf("%+v", d)
	}
	if all := OfDisks(); len(all) != 3 {
		t.Errorf("%d families", len(all))
	}
}
