// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// hostSite is the site of these tests with a host block.
func hostSite(args, zone string) string {
	text := strings.Replace(pinned, "DIGEST", one, 1)
	text = strings.Replace(text, "  handover   = handover.s\n", "  handover   = handover.s\n  host       = host.gpu\n", 1)
	return text + "host \"gpu\" {\n  kernel_args = [" + args + "]\n" + zone + "}\n"
}

// TestEditOfHostSettings: settings of a host that were edited after its
// installation are said, once for each edit with old and new, and nothing is planned
// for them.
func TestEditOfHostSettings(t *testing.T) {
	t.Parallel()
	was := openText(t, hostSite(`"quiet"`, ""))
	store := finished(t, planFor(t, was, state.Empty{}, PlanOptions{}))
	now := openText(t, hostSite(`"quiet", "iommu=pt"`, "  timezone = \"Europe/Berlin\"\n"))
	if p := planFor(t, now, store, PlanOptions{}); !p.Empty() || len(p.Warnings) > 0 {
		t.Errorf("what nodes have is not known: %d steps, %q", len(p.Steps), p.Warnings)
	}
	for _, n := range was.Inv.Nodes {
		give(t, store, was.Inv, n)
	}
	if p := planFor(t, was, store, PlanOptions{}); !p.Empty() || len(p.Warnings) > 0 {
		t.Errorf("nothing was edited: %d steps, %q", len(p.Steps), p.Warnings)
	}
	const args, zone = `host gpu: kernel_args "quiet" -> "quiet iommu=pt" (site.hcl:73) is not on `, `host gpu: timezone "UTC" -> "Europe/Berlin" (site.hcl:73) is not on `
	const why, end = ": host settings are written at install, and an edit alone reinstalls nothing; `ironrail plan --replace ", "` erases and reinstalls them"
	both, second := "n1, n2"+why+"n1,n2"+end, "n2"+why+"n2"+end
	p := planFor(t, now, store, PlanOptions{})
	if want := []string{args + both, zone + both}; !p.Empty() || !slices.Equal(p.Warnings, want) {
		t.Errorf("%d steps, warnings\n%s\nwant\n%s", len(p.Steps), strings.Join(p.Warnings, "\n"), strings.Join(want, "\n"))
	}
	for name, o := range map[string]PlanOptions{"n1 is reinstalled": {Replace: []string{"n1"}}, "n1 is no target": {Targets: []string{"n2"}}} {
		p := planFor(t, now, store, o)
		if !slices.Contains(p.Warnings, args+second) || !slices.Contains(p.Warnings, zone+second) {
			t.Errorf("%s: %q", name, p.Warnings)
		}
	}
}

// TestEditOfSystemInMemory: nothing of it is erased, also not in words.
func TestEditOfSystemInMemory(t *testing.T) {
	t.Parallel()
	memory := strings.NewReplacer(`image "debian" "os" {`, "image \"diskless\" \"os\" {\n  os = \"debian\"", "  disks      = disk_layout.os\n", "")
	was := openText(t, memory.Replace(hostSite(`"quiet"`, "")))
	store := finished(t, planFor(t, was, state.Empty{}, PlanOptions{}))
	for _, n := range was.Inv.Nodes {
		give(t, store, was.Inv, n)
	}
	p := planFor(t, openText(t, memory.Replace(hostSite(`"quiet", "iommu=pt"`, ""))), store, PlanOptions{})
	const want = "host gpu: kernel_args \"quiet\" -> \"quiet iommu=pt\" (site.hcl:73) is not on n1, n2: host settings are written when a system in memory is started, and an edit alone restarts nothing; `ironrail plan --replace n1,n2` starts their systems anew"
	if !p.Empty() || !slices.Equal(p.Warnings, []string{want}) {
		t.Errorf("%d steps, warnings %q, want %q", len(p.Steps), p.Warnings, want)
	}
}

// TestEditOfOwnAddresses: settings in which nodes differ are one sentence too.
func TestEditOfOwnAddresses(t *testing.T) {
	t.Parallel()
	was := openText(t, hostSite(`"quiet"`, ""))
	store := finished(t, planFor(t, was, state.Empty{}, PlanOptions{}))
	for _, n := range was.Inv.Nodes {
		give(t, store, was.Inv, n)
	}
	now := openText(t, strings.Replace(hostSite(`"quiet"`, ""), "02:00:00:00:00:0$", "02:00:00:00:01:0$", 1))
	p := planFor(t, now, store, PlanOptions{})
	if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], `nodes: boot_mac "02:00:00:00:00:01" -> "02:00:00:00:01:01" (site.hcl:`) || !strings.Contains(p.Warnings[0], " is not on n1, n2: ") {
		t.Errorf("warnings %q", p.Warnings)
	}
}

// give records that a node was installed with the settings of an inventory.
func give(t *testing.T, store state.Store, inv *inventory.Inventory, n *inventory.Node) {
	t.Helper()
	g := install.Given{Key: n.Name + "/1/configure", Values: map[string]string{}}
	for _, x := range install.Settings(inv, n) {
		g.Values[x.Name] = x.Value
	}
	f, err := install.SettingsFact.New(subject.OfNode(n.Name), g, n.Serial)
	if err != nil {
		t.Fatal(err)
	}
	put, err := state.PutOf(state.FactKey(f.Key), f)
	if err != nil {
		t.Fatal(err)
	}
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	put.Want = state.Any
	if _, err := store.Append(t.Context(), fence, state.Batch{Puts: []state.Put{put}}); err != nil {
		t.Fatal(err)
	}
}
