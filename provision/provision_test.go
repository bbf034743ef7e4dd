// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/hook"
	"github.com/ironrail/ironrail/provision/keys"
)

// pinned is a site of two nodes whose image is pinned, so that it can be planned
// without building one. 192.0.2.0/24 is for documentation: nothing answers there.
const pinned = `
site "t" { max_erase = 2 }
controller "c" {
  address   = "192.0.2.2"
  interface = "lo"
}
network "boot" {
  cidr = "192.0.2.0/24"
  dhcp { mode = "authoritative" }
}
bmc "b" {
  protocol = "ipmi"
  network  = network.boot
  username = "admin"
  password = secret("env:PW")
}
hardware "h" {
  boot = "bios"
  disk "os" { type = "virtio" }
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:00:03.0"]
    boot    = true
  }
  nic "rail" {
    fabric        = fabric.rail
    software_rdma = "rxe"
    ports         = [{ rail = 0, pci = "0000:00:04.0" }]
  }
}
image "debian" "os" {
  release = "bookworm"
  digest  = "sha256:DIGEST"
}
disk_layout "os" {
  on = "os"
  root { size = "3GiB" }
}
driver "inbox" "rdma" { packages = ["rdma-core"] }
fabric "roce" "rail" {
  rails      = 1
  topology   = "explicit"
  addressing = "subnet"
  cidr       = "198.51.100.0/24"
  mtu        = 1500
}
validation "v" {
  pair {}
  limit "rdma.write_bw" { at_least = "1MB/s" }
}
handover "slurm" "s" { controller = "c" }
role "w" {
  hardware   = hardware.h
  bmc        = bmc.b
  image      = image.os
  disks      = disk_layout.os
  drivers    = [driver.rdma]
  validation = validation.v
  handover   = handover.s
}
rack "r" {
  units = 10
  node "n" {
    for_each = { n1 = 1, n2 = 3 }
    name     = each.key
    role     = role.w
    unit     = each.value
    boot_mac = "02:00:00:00:00:0${each.value}"
    bmc { address = "192.0.2.10${each.value}" }
  }
}
`

const one, two = "1111111111111111111111111111111111111111111111111111111111111111", "2222222222222222222222222222222222222222222222222222222222222222"

// open loads the pinned site with a digest, in dir.
func open(t *testing.T, dir, digest string) *Site {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(strings.Replace(pinned, "DIGEST", digest, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	s, err := Open(inv, Options{Environ: func(string) (string, bool) { t.Error("a secret was asked for"); return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func planFor(t *testing.T, s *Site, r state.Reader, o PlanOptions) *plan.Plan {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	o.Now = time.Now()
	p, diags, err := s.Plan(ctx, r, o)
	if err != nil || diags.HasErrors() {
		t.Fatal(err, diags)
	}
	return p
}

// finished is a state in which every step of p has ended well and its nodes are
// accepted.
func finished(t *testing.T, p *plan.Plan) state.Store {
	t.Helper()
	ctx := context.Background()
	m := state.NewMemory()
	fence, err := m.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	var b state.Batch
	put := func(k state.Key, v any) {
		x, err := state.PutOf(k, v)
		if err != nil {
			t.Fatal(err)
		}
		x.Want = state.Any
		b.Puts = append(b.Puts, x)
	}
	for _, s := range p.Steps {
		put(state.StepKey(s.ID), state.Step{ID: s.ID, State: state.StepIsDone, Version: s.Version, Inputs: s.Inputs})
		if s.Subject.Kind == subject.Node {
			put(state.NodeKey(s.Subject.Name), state.Node{Name: s.Subject.Name, Accepted: true})
		}
	}
	if err := state.AppendParts(ctx, m, fence, b.Split()...); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEveryResourceOfAPlanHasACapacity(t *testing.T) {
	t.Parallel()
	p := planFor(t, open(t, t.TempDir(), one), state.Empty{}, PlanOptions{})
	uses := 0
	for _, s := range p.Steps {
		if s.Deadline.Limit <= 0 {
			t.Errorf("%s has no deadline: it could wait forever", s.ID)
		}
		for _, u := range s.Uses {
			uses++
			head, _, _ := strings.Cut(u.Resource, "/")
			if limits[u.Resource] == 0 && limits[head+"/"] == 0 {
				t.Errorf("%s uses %s, which has no capacity", s.ID, u.Resource)
			}
		}
	}
	if uses == 0 {
		t.Error("no step uses any resource")
	}
}

func TestPlansOfAWholeSite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, one)
	first := planFor(t, s, state.Empty{}, PlanOptions{})
	if len(first.Erase.Nodes) != 2 || len(first.Refusals) != 0 {
		t.Fatalf("erases %v, refusals %v", first.Erase.Nodes, first.Refusals)
	}
	done := finished(t, first)
	if p := planFor(t, s, done, PlanOptions{}); !p.Empty() {
		t.Errorf("a second plan has %d steps", len(p.Steps))
	}
	changed := open(t, t.TempDir(), two)
	if p := planFor(t, changed, done, PlanOptions{}); len(p.Refusals) != 2 {
		t.Errorf("a changed digest on accepted nodes: refusals %v", p.Refusals)
	}
	if why, err := changed.Outdated(context.Background(), done, first); err != nil || !strings.Contains(why, "image.os") {
		t.Errorf("outdated: %q, %v", why, err)
	}
	if why, err := s.Outdated(context.Background(), done, first); err != nil || why != "" {
		t.Errorf("the same site is outdated: %q, %v", why, err)
	}
	p := planFor(t, changed, done, PlanOptions{Replace: []string{"n1"}, Targets: []string{"n1"}})
	if len(p.Refusals) != 0 || len(p.Erase.Nodes) != 1 || p.Steps[0].ID == "" {
		t.Errorf("replacing n1: refusals %v, erases %v", p.Refusals, p.Erase.Nodes)
	}
	if _, ok := p.Step("n1/handover.drain"); !ok {
		t.Error("n1 is replaced without being drained")
	}
}

func TestUnknownNodeIsRefusedWithASuggestion(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), one)
	_, _, err := s.Plan(context.Background(), state.Empty{}, PlanOptions{Replace: []string{"n11"}, Now: time.Now()})
	if err == nil || !strings.Contains(err.Error(), `Did you mean "n1"`) {
		t.Errorf("error %v", err)
	}
}

func TestWhatNothingActsOnIsSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.Replace(pinned, "DIGEST", one, 1) + `
hook "after" "validate" {
  command = ["/bin/true"]
}

hardware "plain" {
  dpu "bf" {
    model = "BlueField-3"
  }
}
`
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	s, err := Open(inv, Options{Look: true})
	if err != nil {
		t.Fatal(err)
	}
	p := planFor(t, s, state.Empty{}, PlanOptions{})
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "dpu bf of hardware plain") {
		t.Errorf("warnings %q", p.Warnings)
	}
	if st, ok := p.Step("n1/validate.after"); !ok || st.Stage != hook.StageName || st.Needs[0].Step != "n1/validate.accept" {
		t.Errorf("the site's own step is %+v", st)
	}
}

// TestRelativeFolder: builders run in folders of their own, where a relative path
// of the site would lead elsewhere.
func TestRelativeFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("site", 0o755); err != nil {
		t.Fatal(err)
	}
	if p := open(t, "site", one).path("images"); !filepath.IsAbs(p) {
		t.Errorf("the image store is at %q", p)
	}
}

func TestLookingMakesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(strings.Replace(pinned, "DIGEST", one, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	s, err := Open(inv, Options{Look: true})
	if err != nil {
		t.Fatal(err)
	}
	if p := planFor(t, s, state.Empty{}, PlanOptions{}); p.Empty() {
		t.Error("nothing is planned")
	}
	if _, err := os.Stat(filepath.Join(dir, StateFolder)); err == nil {
		t.Error("planning made a state folder")
	}
}

func TestKeysAreMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	a, err := keys.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := keys.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a.Pin != b.Pin || string(a.Boot) != string(b.Boot) || !a.Manifest.Equal(b.Manifest) {
		t.Error("keys differ from one process to the next: agents and attempts would be lost")
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) < 4 {
		t.Fatalf("%v: %v", names, err)
	}
	for _, n := range names {
		if info, err := os.Stat(n); err != nil || info.Mode().Perm()&0o077 != 0 && !strings.HasSuffix(n, ".pub") {
			t.Errorf("%s has mode %v", n, info.Mode())
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.key"), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Load(dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged key: %v", err)
	}
}
