// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestDefaultQuorum: on a site that gives no quorum, one dead BMC keeps no other node
// from being judged and accepted.
func TestDefaultQuorum(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/scale")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "site.hcl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	without := bytes.ReplaceAll(text, []byte("  quorum = \"75%\"\n"), nil)
	if len(without) == len(text) {
		t.Fatal("the site has no quorum to leave out")
	}
	if err := os.WriteFile(file, without, 0o600); err != nil {
		t.Fatal(err)
	}
	sum, err := rehearsal.Run(context.Background(), load(t, dir, map[string]string{"nodes": "32"}),
		rehearsal.Options{Seed: 1, Faults: []fault.Fault{{Kind: fault.BMCDead, Node: "r0002-n3"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != 31 || len(sum.Quarantined) != 1 || sum.Quarantined[0].Node != "r0002-n3" {
		t.Errorf("%d accepted, %+v", len(sum.Accepted), sum.Quarantined)
	}
}
