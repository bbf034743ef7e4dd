// SPDX-License-Identifier: Apache-2.0

// Package validate_test tries the stages of fabrics and of validation on virtual nodes,
// which they reach by the real SSH client.
package validate_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
	"github.com/ironrail/ironrail/validate"

	"golang.org/x/crypto/ssh"
)

// run is a stage.Run on the bubble's clock.
type run struct{ *onnodetest.Run }

func (run) Clock() clock.Clock { return clock.Wall{} }

// causes are the findings of a run in a line each.
func (r run) causes() string {
	var list []string
	for _, f := range r.Findings {
		for _, s := range f.Suspects {
			list = append(list, s.Subject.Name+" "+s.Part+": "+f.Cause)
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rails brings the fabric up on every node and learns what the later tests need.
func rails(t *testing.T, r *systemtest.Rig) run {
	t.Helper()
	rec := run{onnodetest.NewRun()}
	kind := roce.New(r)
	for _, n := range r.Inv.Nodes {
		me := subject.OfNode(n.Name)
		rec.Subjects = append(rec.Subjects, me)
		ports, err := kind.Apply(t.Context(), rec, r.Inv.Fabrics[0], n)
		must(t, err)
		f, err := fabric.Ports("rail").New(me, ports, "")
		must(t, err)
		k, err := fact.Name[string]("ssh.host_key").New(me, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(r.HostKey[n.Name]))), "")
		must(t, err)
		must(t, rec.Learn(t.Context(), f, k))
	}
	return rec
}

func TestFabricStage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		speed  unit.BitRate
		device string
		gid    int
		mtu    int
	}{
		"soft": {0, "rxe0", 1, 1024}, "hardware": {400e9, "mlx5_0", 3, 4096},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := systemtest.New(t, systemtest.NewSite(1, 2, c.speed))
				defer r.Stop()
				r.Wait()
				n, f := r.Inv.Nodes[0], r.Inv.Fabrics[0]
				kind := roce.New(r)
				if o, _, err := kind.Observe(t.Context(), nil, f, n); err != nil || o.State != stage.Differs {
					t.Errorf("before: %+v, %v", o, err)
				}
				ports, err := kind.Apply(t.Context(), nil, f, n)
				if err != nil || len(ports) != 2 || ports[0].Device != c.device || ports[0].GIDIndex != c.gid || ports[0].ActiveMTU != c.mtu {
					t.Fatalf("%+v, %v", ports, err)
				}
				if _, exit := r.Sh("n1", "reboot"); exit != 0 {
					t.Fatal("reboot")
				}
				time.Sleep(90 * time.Second)
				if o, again, err := kind.Observe(t.Context(), nil, f, n); err != nil || o.State != stage.Conforms || len(again) != 2 {
					t.Errorf("after a reboot: %+v, %v", o, err)
				}
				// A rail without light is named, and no other.
				must(t, r.Model.SetDown(model.PortID{Node: "n1", NIC: "rail", Index: 1}, true))
				if o, _, err := kind.Observe(t.Context(), nil, f, n); err != nil || o.State != stage.Differs || !strings.Contains(o.Evidence, "rail 1") || strings.Contains(o.Evidence, "rail 0") {
					t.Errorf("without light: %+v, %v", o, err)
				}
			})
		})
	}
}

// accept gives every node of a site the tests of a validation.
func accept(inv *inventory.Inventory, writeFloor, reduceFloor string) {
	limit := func(text string) *unit.Quantity {
		q, err := unit.ParseAny(text)
		if err != nil {
			panic(err)
		}
		return &q
	}
	v := &inventory.Validation{Name: "v", Pair: &inventory.PairTest{Engine: "perftest", Size: 64 << 10},
		AllReduce: &inventory.CollectiveTest{Engine: "mpi", Scope: []string{"all"}, Sizes: []unit.Bytes{4 << 10, 1 << 20}},
		Limits:    []inventory.MeasureLimit{{Name: "all_reduce.busbw", AtLeast: limit(reduceFloor)}, {Name: "rdma.write_bw", AtLeast: limit(writeFloor)}}}
	for _, n := range inv.Nodes {
		n.Validation = v
	}
}

// judge runs one test of the validate stage.
func judge(t *testing.T, r *systemtest.Rig, rec run, step plan.StepID) error {
	t.Helper()
	s := validate.New(r.Inv, r)
	list, diags := s.Plan(rec)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, st := range list {
		if st.ID == step {
			return s.Apply(t.Context(), rec, st)
		}
	}
	t.Fatalf("no step %s", step)
	return nil
}

// Healthy nodes pass, and one bad cable is found and named, with what its port
// counted; nobody else is suspected.
func TestValidateStage(t *testing.T) {
	t.Parallel()
	bad := model.PortID{Node: "n2", NIC: "rail", Index: 1}
	for _, c := range []struct {
		name   string
		speed  unit.BitRate
		floors [2]string
		fault  func(*model.Model) error
		found  string // "" for none
		counts string // in the evidence
	}{
		{"healthy", 400e9, [2]string{"47GB/s", "1GB/s"}, nil, "", ""},
		{"healthy soft RoCE", 0, [2]string{"2MB/s", "5MB/s"}, nil, "", ""},
		{"one lane and errors", 400e9, [2]string{"47GB/s", "100MB/s"}, func(m *model.Model) error {
			if err := m.SetErrors(bad, 1e-9); err != nil {
				return err
			}
			return m.SetLanes(bad, 1)
		}, "n2 rail 1: RDMA writes over n2 rail 1 are slow", "symbol_error +"},
		{"errors only", 400e9, [2]string{"47GB/s", "100MB/s"}, func(m *model.Model) error { return m.SetErrors(bad, 3e-8) }, "n2 rail 1: RDMA writes over n2 rail 1 are slow", "port_rcv_errors +"},
		{"a storm of errors", 400e9, [2]string{"47GB/s", "100MB/s"}, func(m *model.Model) error { return m.SetErrors(bad, 1e-4) }, "n2 rail 1: RDMA writes over n2 rail 1 fail", ""},
		{"two cables of a node exchanged", 400e9, [2]string{"47GB/s", "100MB/s"}, func(m *model.Model) error { return m.Swap(bad, model.PortID{Node: "n2", NIC: "rail", Index: 0}) },
			"n2 all rails: RDMA writes over n2 all rails fail", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				inv := systemtest.NewSite(4, 2, c.speed)
				accept(inv, c.floors[0], c.floors[1])
				r := systemtest.New(t, inv)
				defer r.Stop()
				r.Wait()
				rec := rails(t, r)
				if c.fault != nil {
					must(t, c.fault(r.Model))
				}
				began := time.Now()
				if err := judge(t, r, rec, "all/validate.pair"); err != nil {
					t.Fatal(err)
				}
				t.Logf("pair test: %v", time.Since(began))
				causes := rec.causes()
				if (causes == "") != (c.found == "") || !strings.HasPrefix(causes, c.found) || strings.Contains(causes, "\n") && c.found == "" {
					t.Errorf("found %q, want %q", causes, c.found)
				}
				for _, f := range rec.Findings {
					if len(f.Suspects) != 1 || !strings.Contains(strings.Join(f.Evidence, "\n"), c.counts) {
						t.Errorf("suspects %v, evidence %q", f.Suspects, f.Evidence)
					}
				}
				if c.fault != nil {
					return
				}
				began = time.Now()
				if err := judge(t, r, rec, "all/validate.all_reduce"); err != nil || len(rec.Findings) > 0 {
					t.Errorf("all-reduce: %v, %v, %q", err, rec.causes(), rec.Evidence)
				}
				t.Logf("all-reduce: %v", time.Since(began))
				if out, _ := r.Sh("n2", "ls -a /root/.ssh /run/ironrail"); strings.Contains(out, "keys2") || strings.Contains(out, "allreduce-") {
					t.Errorf("left behind: %q", out)
				}
			})
		})
	}
}

// What goes wrong with an all-reduce names the node.
func TestAllReduceFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault func(t *testing.T, r *systemtest.Rig)
		want  string
	}{
		{"light gone", func(t *testing.T, r *systemtest.Rig) {
			must(t, r.Model.SetDown(model.PortID{Node: "n3", NIC: "rail"}, true))
		}, "n3"},
		{"rail without address", func(t *testing.T, r *systemtest.Rig) {
			port := r.Metal["n3"].Ports()[1]
			list, err := r.Metal["n3"].Kernel().Addresses(port.Netdev)
			must(t, err)
			for _, a := range list {
				must(t, r.Metal["n3"].Kernel().DropAddress(port.Netdev, a))
			}
		}, "n3"},
		{"power gone", func(t *testing.T, r *systemtest.Rig) {
			r.Off("n3")
			time.Sleep(time.Second)
		}, "n3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				inv := systemtest.NewSite(3, 1, 400e9)
				accept(inv, "1MB/s", "1MB/s")
				r := systemtest.New(t, inv)
				defer r.Stop()
				r.Wait()
				rec := rails(t, r)
				c.fault(t, r)
				err := judge(t, r, rec, "all/validate.all_reduce")
				if causes := rec.causes(); !strings.HasPrefix(causes, c.want) || strings.Contains(causes, "n1 ") || strings.Contains(causes, "n2 ") {
					t.Errorf("%v: found %q, want %q", err, causes, c.want)
				}
			})
		})
	}
}
