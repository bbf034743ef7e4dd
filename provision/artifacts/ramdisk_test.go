// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// TestAgentByArchitecture: each node gets the agent for its own processors, and one for
// others is never taken.
func TestAgentByArchitecture(t *testing.T) {
	t.Parallel()
	header := "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"
	amd64, arm64 := header+"\x3e\x00 amd64", header+"\xb7\x00 arm64"
	x86, grace := &inventory.Hardware{}, &inventory.Hardware{Arch: inventory.ARM64}
	for name, c := range map[string]struct {
		files map[string]string
		nodes []*inventory.Hardware
		want  string // in the error; "": none
	}{
		"one, without its architecture": {map[string]string{"": amd64}, []*inventory.Hardware{x86}, ""},
		"both":                          {map[string]string{"": amd64, "-arm64": arm64}, []*inventory.Hardware{x86, grace, x86}, ""},
		"both by name":                  {map[string]string{"-amd64": amd64, "-arm64": arm64}, []*inventory.Hardware{x86, grace}, ""},
		"a controller of arm64":         {map[string]string{"": arm64, "-amd64": amd64}, []*inventory.Hardware{x86, grace}, ""},
		"no node needs the one that is not there": {map[string]string{"-arm64": arm64}, []*inventory.Hardware{grace}, ""},
		"the other is not there":                  {map[string]string{"": amd64}, []*inventory.Hardware{x86, grace}, "no ELF program for arm64: it is amd64"},
		"the other is not what it says":           {map[string]string{"": amd64, "-arm64": amd64}, []*inventory.Hardware{grace}, "no ELF program for arm64: it is amd64"},
		"none":                                    {nil, []*inventory.Hardware{x86}, "of amd64"},
	} {
		dir := t.TempDir()
		for end, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, "agent"+end), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		inv := &inventory.Inventory{}
		for _, h := range c.nodes {
			inv.Nodes = append(inv.Nodes, &inventory.Node{Hardware: h})
		}
		r, err := New(inv, dir, nil).Ramdisk(filepath.Join(dir, "agent"))
		switch {
		case c.want != "":
			if errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), c.want) || errkind.Action(err) == "" {
				t.Errorf("%s: got %v, want one that is NotFound and says %q", name, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			for _, n := range inv.Nodes {
				if r.agents[archOf(n)] == nil {
					t.Errorf("%s: no agent for %s", name, archOf(n))
				}
			}
		}
	}
}
