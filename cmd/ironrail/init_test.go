// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// TestFirstSites: every kind of first site, of every size, has no finding, is in
// its usual form, and brings all its nodes up on the virtual rack.
func TestFirstSites(t *testing.T) {
	t.Parallel()
	for _, k := range initKinds {
		for nodes := 1; nodes <= k.most(); nodes++ {
			t.Run(fmt.Sprintf("%s %d", k.name, nodes), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "first")
				a := &app{out: io.Discard, err: io.Discard, now: time.Now}
				if err := a.init(dir, k, nodes); err != nil {
					t.Fatal(err)
				}
				text, err := os.ReadFile(filepath.Join(dir, "site.hcl"))
				if err != nil || !bytes.Equal(text, hclwrite.Format(text)) {
					t.Errorf("site.hcl is not in its usual form: %v", err)
				}
				if left := regexp.MustCompile(`@\w*@?`).Find(text); left != nil {
					t.Errorf("%q is left in site.hcl", left)
				}
				inv, diags, _ := provision.Load(dir, inventory.Options{Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}) // the support of drivers ends some day
				for _, d := range diags {
					t.Errorf("[%s] %s: %s", d.Check, d.Summary, d.Detail)
				}
				if len(inv.Nodes) != nodes {
					t.Fatalf("%d nodes, want %d", len(inv.Nodes), nodes)
				}
				if nodes != 2 && nodes != k.most() {
					return
				}
				onlyToBuild(t, a.gapsOf(inv))
				sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 1})
				if err != nil || len(sum.Accepted) != nodes {
					t.Errorf("accepted %v, quarantined %+v: %v", sum.Accepted, sum.Quarantined, err)
				}
			})
		}
	}
}

func TestSiteNames(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{"/a/North": "north", "/a/dc_1.b": "dc-1-b", "/": "site", "/ü": "site", "/a/" + string(bytes.Repeat([]byte("x"), 41)): "site"} {
		if got, err := siteName(dir); err != nil || got != want {
			t.Errorf("%s: %q, want %q: %v", dir, got, want, err)
		}
	}
}
