// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

var update = flag.Bool("update", false, "write golden files")

func place(line int) hcl.Range {
	return hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: line, Column: 1}, End: hcl.Pos{Line: line, Column: 10}}
}

func site(drivers ...*inventory.Driver) *inventory.Inventory {
	image := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}}
	hw := &inventory.Hardware{NICs: []inventory.NIC{{Name: "rail", SoftwareRDMA: "rxe"}}}
	inv := &inventory.Inventory{Drivers: drivers}
	for _, name := range []string{"n1", "n2"} {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: name, Image: image, Hardware: hw, Drivers: drivers})
	}
	return inv
}

func rdma() *inventory.Driver {
	return &inventory.Driver{
		Block:    inventory.Block{Kind: "inbox", Name: "rdma", Decl: place(101), Ranges: map[string]hcl.Range{"packages": place(102)}},
		Packages: []string{"rdma-core", "ibverbs-utils"},
	}
}

// repos is a repository that is built by the first Ensure.
type repos struct {
	repo  manager.Repository
	built bool
	count int
	err   error
}

func (r *repos) Ensure(_ context.Context, _ *inventory.Driver, _ string, say func(string)) (manager.Repository, error) {
	say("resolving packages")
	r.count++
	r.built = r.err == nil
	return r.repo, r.err
}

func (r *repos) Find(context.Context, *inventory.Driver, string) (manager.Repository, bool, error) {
	return r.repo, r.built, nil
}

func newRepos() *repos {
	return &repos{repo: manager.Repository{URL: "http://10.77.0.2:8080/repo/rdma/", ArmoredKey: []byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\n"),
		Packages: map[string]string{"rdma-core": "44.0-2", "ibverbs-utils": "44.0-2", "libibverbs1": "44.0-2", "perl-x": "1"}}}
}

// debian is a node on which apt-get installs what it is asked for.
type debian struct {
	onnodetest.Nodes
	installed string
	loaded    bool
	locks     int // answers of "locked" before the first success
	broken    bool
}

func newDebian() *debian {
	d := &debian{}
	d.Rules = []onnodetest.Rule{
		func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
			line := c.Line()
			switch {
			case strings.Contains(line, "apt-get") && d.locks > 0:
				d.locks--
				return onnode.Output{Exit: 100, Stderr: []byte("E: Could not get lock /var/lib/apt/lists/lock. It is held by process 612 (apt-get)\n")}, nil, true
			case strings.Contains(line, "apt-get") && d.broken:
				return onnode.Output{Exit: 100, Stderr: []byte("E: The repository is not signed.\n")}, nil, true
			case strings.Contains(line, "apt-get") && strings.Contains(line, " install "):
				d.installed = "ibverbs-utils\t44.0-2\tinstalled\nlibibverbs1\t44.0-2\tinstalled\nrdma-core\t44.0-2\tinstalled\n"
				return onnode.Output{}, nil, true
			case strings.Contains(line, "apt-get"):
				return onnode.Output{}, nil, true
			case strings.HasPrefix(line, "dpkg-query"):
				return onnode.Output{Stdout: []byte(d.installed), Stderr: []byte("dpkg-query: no packages found matching perl-x\n"), Exit: 1}, nil, true
			case line == "modprobe rdma_rxe":
				d.loaded = true
				return onnode.Output{}, nil, true
			case line == "test -d /sys/module/rdma_rxe":
				if d.loaded {
					return onnode.Output{}, nil, true
				}
				return onnode.Output{Exit: 1}, nil, true
			case line == "ibv_devices":
				return onnode.Output{Stdout: []byte("    device          \t   node GUID\n")}, nil, true
			}
			return onnode.Output{}, nil, false
		},
	}
	return d
}

func steps(t *testing.T, s *driver.Stage) map[plan.StepID]plan.Step {
	t.Helper()
	list, diags := s.Plan(onnodetest.NewRun())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	out := map[plan.StepID]plan.Step{}
	for _, st := range list {
		out[st.ID] = st
	}
	return out
}

func TestPlanGolden(t *testing.T) {
	t.Parallel()
	s := driver.New(site(rdma()), map[string]driver.Kind{"inbox": inbox.New(nil, nil)})
	list, diags := s.Plan(onnodetest.NewRun())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	got, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "plan.json")
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != string(got)+"\n" {
		t.Errorf("plan differs from %s (%v); got:\n%s", file, err, got)
	}
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	bad := rdma()
	bad.Packages = []string{"rdma-core", "x; rm -rf /"}
	empty := rdma()
	empty.Packages = nil
	cuda := &inventory.Driver{Block: inventory.Block{Kind: "cuda", Name: "gpu", Decl: place(7)}}
	for _, c := range []struct {
		name, want string
		d          *inventory.Driver
		line       int
	}{
		{"injection", "not possible", bad, 102},
		{"empty", "no packages", empty, 102},
		{"kind", "kind is not supported", cuda, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := driver.New(site(c.d), map[string]driver.Kind{"inbox": inbox.New(nil, nil)})
			_, diags := s.Plan(onnodetest.NewRun())
			if len(diags) != 1 || !strings.Contains(diags[0].Summary, c.want) || diags[0].Subject.Start.Line != c.line {
				t.Errorf("got %v", diags)
			}
		})
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	node, rs := newDebian(), newRepos()
	node.locks = 3
	s := driver.New(site(rdma()), map[string]driver.Kind{"inbox": inbox.New(node, rs)})
	all := steps(t, s)
	run := onnodetest.NewRun(subject.OfNode("n1"))
	ctx := t.Context()

	prepare := all["site/drivers.rdma.os"]
	if o, err := s.Observe(ctx, run, prepare); err != nil || o.State != stage.Differs {
		t.Fatalf("before: %v %v", o, err)
	}
	if err := s.Apply(ctx, run, prepare); err != nil || rs.count != 1 {
		t.Fatalf("prepare: %v, %d builds", err, rs.count)
	}
	if o, err := s.Observe(ctx, run, prepare); err != nil || o.State != stage.Conforms {
		t.Fatalf("after: %v %v", o, err)
	}

	st := all["n1/drivers.rdma"]
	o, err := s.Observe(ctx, run, st)
	if err != nil || o.State != stage.Differs || !strings.Contains(o.Evidence, "rdma-core is not installed") {
		t.Fatalf("before: %+v %v", o, err)
	}
	if n := len(node.Calls("modprobe")) + len(node.Calls("apt-get")); n != 0 {
		t.Fatal("observing changed the node")
	}
	if err := s.Apply(ctx, run, st); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Observe(ctx, run, st); err != nil || o.State != stage.Conforms {
		t.Fatalf("after: %+v %v", o, err)
	}
	list, _ := node.File("n1", "/etc/apt/sources.list.d/ironrail-rdma.list")
	if want := "deb [signed-by=/etc/apt/keyrings/ironrail-rdma.asc] http://10.77.0.2:8080/repo/rdma/ ./\n"; string(list) != want {
		t.Errorf("source %q", list)
	}
	if _, ok := node.File("n1", "/etc/modules-load.d/ironrail-rdma.conf"); !ok {
		t.Error("module is not loaded at boot")
	}
	installs := node.Calls(" install ")
	if len(installs) != 1 || !strings.HasSuffix(installs[0].Line(), " ibverbs-utils=44.0-2 rdma-core=44.0-2") {
		t.Errorf("install: %v", installs)
	}
	f, ok := run.Fact(driver.Packages("rdma").Of(subject.OfNode("n1")))
	if !ok || !strings.Contains(string(f.Value), `"rdma-core":"44.0-2"`) {
		t.Errorf("fact %s", f.Value)
	}
}

func TestInstallFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		set        func(*debian, *repos)
		kind       errkind.Kind
	}{
		{"lock forever", "Could not get lock", func(d *debian, _ *repos) { d.locks = 1000 }, errkind.Refused},
		{"unsigned", "not signed", func(d *debian, _ *repos) { d.broken = true }, errkind.Refused},
		{"repository cannot be built", "no space", func(_ *debian, r *repos) { r.err = errors.New("no space") }, errkind.Internal},
		{"other version", "rdma-core is 44.0-2, not 99", func(_ *debian, r *repos) { r.repo.Packages["rdma-core"] = "99" }, errkind.Mismatch},
		{"no way", "unreachable", func(d *debian, _ *repos) {
			d.Rules = []onnodetest.Rule{func(context.Context, onnodetest.Call) (onnode.Output, error, bool) {
				return onnode.Output{}, errkind.New(errkind.Unreachable, "unreachable"), true
			}}
		}, errkind.Unreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			node, rs := newDebian(), newRepos()
			rs.built = true
			c.set(node, rs)
			s := driver.New(site(rdma()), map[string]driver.Kind{"inbox": inbox.New(node, rs)})
			err := s.Apply(t.Context(), onnodetest.NewRun(), steps(t, s)["n1/drivers.rdma"])
			if err == nil || !strings.Contains(err.Error(), c.want) || errkind.Of(err) != c.kind {
				t.Errorf("got %v (%v)", err, errkind.Of(err))
			}
		})
	}
}

func TestInstallRebuildsALostRepository(t *testing.T) {
	t.Parallel()
	node, rs := newDebian(), newRepos()
	s := driver.New(site(rdma()), map[string]driver.Kind{"inbox": inbox.New(node, rs)})
	st, run := steps(t, s)["n1/drivers.rdma"], onnodetest.NewRun()
	if o, err := s.Observe(t.Context(), run, st); err != nil || o.State != stage.Unknown {
		t.Fatalf("got %v %v", o, err)
	}
	if err := s.Apply(t.Context(), run, st); err != nil || rs.count != 1 {
		t.Errorf("%v, %d builds", err, rs.count)
	}
}

// TestNothingToDo: a site whose steps are all done has an empty plan, and one
// node that is replaced takes its drivers along.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	s := driver.New(site(rdma()), map[string]driver.Kind{"inbox": inbox.New(nil, nil)})
	list, _ := s.Plan(onnodetest.NewRun())
	list = append([]plan.Step{
		{ID: "site/image.os", Subject: subject.ID{Kind: subject.Site, Name: "image.os"}, Only: plan.WhenNeeded},
		{ID: "n1/install.boot", Subject: subject.OfNode("n1")}, {ID: "n2/install.boot", Subject: subject.OfNode("n2")},
	}, list...)
	prior := plan.Prior{Steps: map[plan.StepID]plan.LastSuccess{}, Nodes: map[string]plan.NodeState{"n1": {Accepted: true}, "n2": {Accepted: true}}}
	for _, st := range list {
		prior.Steps[st.ID] = plan.LastSuccess{Version: st.Version, Inputs: st.Inputs}
	}
	p, err := plan.Diff(list, prior, plan.Options{})
	if err != nil || !p.Empty() {
		t.Fatalf("%v: %+v", err, p.Steps)
	}
	p, err = plan.Diff(list, prior, plan.Options{Replace: map[string]bool{"n1": true}})
	var ids []plan.StepID
	for _, st := range p.Steps {
		ids = append(ids, st.ID)
	}
	want := []plan.StepID{"site/image.os", "n1/install.boot", "site/drivers.rdma.os", "n1/drivers.rdma"}
	if err != nil || !slices.Equal(ids, want) {
		t.Fatalf("%v: got %v, want %v", err, ids, want)
	}
}

func TestPrepareFindsAMissingPackage(t *testing.T) {
	t.Parallel()
	rs := newRepos()
	delete(rs.repo.Packages, "ibverbs-utils")
	s := driver.New(site(rdma()), map[string]driver.Kind{"inbox": inbox.New(newDebian(), rs)})
	err := s.Apply(t.Context(), onnodetest.NewRun(), steps(t, s)["site/drivers.rdma.os"])
	if e, ok := errors.AsType[*errkind.Error](err); !ok || e.Kind != errkind.NotFound || e.Action == "" {
		t.Errorf("got %v", err)
	}
}
