// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/gaps"
)

// unimplementedSettings are the changes of a site that ask for what this ironrail
// does nothing with: the text that is replaced, what stands there instead, what is
// said of it, and whether a plan refuses it.
var unimplementedSettings = []struct {
	name, old, with, says string
	refused               bool
}{
	{"secure_boot", "hardware \"h\" {", "hardware \"h\" {\n  secure_boot = true", "secure_boot of hardware h with image os of kind oci", true},
	{"dpu", "hardware \"h\" {", "hardware \"h\" {\n  dpu \"bf\" { model = \"BlueField-3\" }", "dpu bf of hardware h", false},
	{"dpu bmc", "hardware \"h\" {", "hardware \"h\" {\n  dpu \"bf\" {\n    model = \"BlueField-3\"\n    mode = \"nic\"\n    pci = [\"0000:3b:00.0\"]\n    bmc = true\n  }", "bmc of dpu bf of hardware h", false},
	{"cidr6", "network \"boot\" {", "network \"oob\" {\n  cidr = \"203.0.113.0/24\"\n  cidr6 = \"2001:db8::/64\"\n}\nnetwork \"boot\" {", "cidr6 of network oob", false},
	{"mtu", "network \"boot\" {", "network \"oob\" {\n  cidr = \"203.0.113.0/24\"\n  mtu = 9000\n}\nnetwork \"boot\" {", "mtu of network oob", false},
	{"pool", "dhcp { mode = \"authoritative\" }", "dhcp {\n    mode = \"proxy\"\n    pool = \"192.0.2.200-192.0.2.220\"\n  }", "pool of the dhcp block of network boot", true},
	{"dhcp", "network \"boot\" {", "network \"oob\" {\n  cidr = \"203.0.113.0/24\"\n  dhcp { mode = \"authoritative\" }\n}\nnetwork \"boot\" {", "the dhcp block of network oob", false},
	{"attach", "bmc \"b\" {", "bmc \"b\" {\n  attach = \"shared\"", "attach of bmc b", false},
	{"factory", "bmc \"b\" {", "bmc \"b\" {\n  factory { username = \"ADMIN\" }", "factory of bmc b", true},
	{"factory_password", "role     = role.w", "role     = role.w\n    factory_password = secret(\"env:FACTORY\")", "factory_password of bmc b", false},
	{"after", "role \"w\" {", "role \"v\" {\n  bmc = bmc.b\n  image = image.os\n}\nrole \"w\" {\n  after = [role.v]", "after of role w", false},
	{"controllers", "controller \"c\" {", "controller \"d\" { address = \"192.0.2.3\" }\ncontroller \"c\" {", "exactly one controller", true},
}

// TestUnimplementedIsNeverSilent: each setting that this ironrail does nothing with is
// shown by check with its place, and refused by a plan or named by it.
func TestUnimplementedIsNeverSilent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../cmd/ironrail/testdata/site.hcl")
	if err != nil {
		t.Fatal(err)
	}
	base := strings.Replace(string(text), "  handover   = handover.s\n", "  handover   = handover.s\n  host       = host.x\n", 1)
	base = strings.Replace(base, "  release = \"bookworm\"\n", "  release = \"bookworm\"\n  packages = [\"mstflint\"]\n", 1) + "\nhost \"x\" {\n}\n"
	for _, c := range unimplementedSettings {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			site := strings.Replace(base, c.old, c.with, 1)
			if c.name == "secure_boot" { // which works with images of packages, and with no BIOS
				site = strings.NewReplacer("image \"debian\" \"os\" {", "image \"oci\" \"os\" {\n  source = \"registry.example/os:1\"\n  os = \"debian\"", "  boot = \"bios\"\n", "", "  packages = [\"mstflint\"]\n", "").Replace(site)
			}
			if site == base {
				t.Fatalf("%q is not in the site", c.old)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(site), 0o600); err != nil {
				t.Fatal(err)
			}
			inv, found, _ := Load(dir, inventory.Options{CheckNames: []string{UnimplementedCheck}})
			if found.HasErrors() {
				t.Fatal(found)
			}
			want := ""
			for _, d := range found {
				if d.Check == UnimplementedCheck && strings.Contains(d.Detail, c.says) && d.Subject.Start.Line > 0 {
					want = d.Detail
				}
			}
			if want == "" {
				t.Fatalf("check says %+v", found)
			}
			s, err := Open(inv, Options{Look: true})
			if err != nil {
				t.Fatal(err)
			}
			var list gaps.List
			p, diags, err := s.Plan(t.Context(), state.Empty{}, PlanOptions{Gaps: func(l gaps.List) { list = l }})
			if err != nil {
				t.Fatal(err)
			}
			if want != "" && c.name != "controllers" {
				inList(t, list, want, c.refused)
			}
			if again, err := s.Gaps(); err != nil || !reflect.DeepEqual(again.Lines(), list.Lines()) {
				t.Errorf("check lists %q, and plan %q: %v", again.Lines(), list.Lines(), err)
			}
			refusedInList(t, list, diags)
			if !c.refused {
				if diags.HasErrors() || !strings.Contains(strings.Join(p.Warnings, "\n"), want) || !strings.Contains(want, "ignored") {
					t.Errorf("plan: %v", diags)
				}
				return
			}
			said := false
			for _, d := range diags {
				said = said || d.Detail == want && d.Subject != nil && d.Subject.Start.Line > 0
			}
			if p != nil || !said {
				t.Errorf("plan says %v, check says %q", diags, want)
			}
			again, err := Refusals(inv)
			if err != nil || !slices.ContainsFunc(again, func(d *hcl.Diagnostic) bool { return d.Detail == want && d.Subject != nil }) {
				t.Errorf("a rehearsal is refused for %v, %v; want %q", again, err, want)
			}
		})
	}
}

// inList wants one gap of the list of a plan with a detail, at its place.
func inList(t *testing.T, list gaps.List, detail string, refused bool) {
	t.Helper()
	var of gaps.List
	for _, g := range list {
		if g.Detail == detail {
			of = append(of, g)
		}
	}
	kind := gaps.NoEffect
	if refused {
		kind = gaps.Refused
	}
	if len(of) != 1 || of[0].Kind != kind || of[0].Place.Line == 0 || of[0].Nodes == 0 && of[0].Block != "network" {
		t.Errorf("the list of the plan has %+v", of)
	}
}

// refusedInList wants each error of a plan in its list.
func refusedInList(t *testing.T, list gaps.List, diags hcl.Diagnostics) {
	t.Helper()
	for _, d := range diags {
		if d.Severity == hcl.DiagError && !slices.ContainsFunc(list, func(g gaps.Gap) bool { return g.Summary == d.Summary && (g.Block == "node" || g.Range() == *d.Subject) }) {
			t.Errorf("a plan is refused for %q at %v, which is not in its list: %q", d.Summary, d.Subject, list.Lines())
		}
	}
}
