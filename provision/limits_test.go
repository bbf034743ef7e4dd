// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"os"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
)

// TestUnits: how much of a resource is in use, as docs/limits.md shows it.
func TestUnits(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		resource    string
		used, limit int
		want        string
	}{
		{"inrush/r01/a/L2", 11_200, 14_400, "11.2 of 14.4 kW in use"},
		{"inrush/r01", 8, 8, "8 of 8 nodes are being switched on"},
		{"streams", 16, 16, "16 of 16 in use"},
	} {
		if got := units(c.resource, c.used, c.limit); got != c.want {
			t.Errorf("%s: %q, want %q", c.resource, got, c.want)
		}
		if line := "waits for " + c.resource + ": " + c.want; !strings.Contains(string(page), line) {
			t.Errorf("docs/limits.md does not show %q", line)
		}
	}
}

// TestEveryClaimFits: what nodes claim of their circuits has a capacity that can
// meet it, beside the limits that every site has.
func TestEveryClaimFits(t *testing.T) {
	t.Parallel()
	inv, diags, _ := Load("../examples/demo", inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	all, claims := capacity(inv), power.NewInrush(inv)
	for _, n := range inv.Nodes {
		of := claims.Of(n.Name)
		if len(of) != 6 {
			t.Errorf("%s claims %v, want one of each phase of two PDUs", n.Name, of)
		}
		for _, c := range of {
			if room := all["inrush/"+c.Circuit]; c.Watts <= 1 || room < c.Watts {
				t.Errorf("%s claims %d of the %d W of %s", n.Name, c.Watts, room, c.Circuit)
			}
		}
	}
	for name, n := range limits {
		if all[name] != n {
			t.Errorf("%s: %d, want %d", name, all[name], n)
		}
	}
}
