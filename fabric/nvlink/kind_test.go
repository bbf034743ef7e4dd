// SPDX-License-Identifier: Apache-2.0

package nvlink

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// trays is two domains of two trays each, with what nvidia-smi and IMEX say.
type trays struct {
	*onnodetest.Nodes
	inv *inventory.Inventory
	f   *inventory.Fabric

	mu     sync.Mutex
	fabric map[string]string // of a node's second GPU: "STATE STATUS CLUSTER CLIQUE"
	imex   string            // what nvidia-imex-ctl prints; "": all are ready
	active map[string]bool
	prolog map[string]string // what a node writes into nodes_config.cfg when IMEX starts
}

func newTrays() *trays {
	f := &inventory.Fabric{Block: inventory.Block{Kind: Name, Name: "nv", Value: cty.ObjectVal(map[string]cty.Value{"imex": cty.True})}}
	hw := &inventory.Hardware{Name: "tray", GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "GB200", Count: 2, Interconnect: "nvlink"}}}
	t := &trays{inv: &inventory.Inventory{Fabrics: []*inventory.Fabric{f}}, f: f, fabric: map[string]string{}, active: map[string]bool{}}
	for i, name := range []string{"a2", "a1", "b1", "b2"} {
		t.inv.Nodes = append(t.inv.Nodes, &inventory.Node{Name: name, Domain: "nv-" + name[:1], Hardware: hw, Image: &inventory.Image{}, Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(20 - i)}),
			Drivers: []*inventory.Driver{{Block: inventory.Block{Kind: "cuda", Name: "d"}}}})
	}
	t.Nodes = &onnodetest.Nodes{Rules: []onnodetest.Rule{t.answer}}
	return t
}

func (t *trays) answer(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := func(text string, exit int) (onnode.Output, error, bool) {
		return onnode.Output{Stdout: []byte(text), Exit: exit}, nil, true
	}
	switch line := c.Line(); {
	case line == "nvidia-smi -q -x":
		return said(t.smi(c.Node), 0)
	case strings.HasPrefix(line, "cat "):
		b, ok := t.File(c.Node, c.Argv[1])
		return said(string(b), map[bool]int{true: 0, false: 1}[ok])
	case line == "systemctl is-active nvidia-imex":
		return said(map[bool]string{true: "active", false: "inactive"}[t.active[c.Node]]+"\n", 0)
	case strings.HasPrefix(line, "systemctl "):
		t.active[c.Node] = t.active[c.Node] || c.Argv[1] != "enable"
		if list, has := t.prolog[c.Node]; has && c.Argv[1] != "enable" {
			t.Put(c.Node, nodesFile, []byte(list))
		}
		return said("", 0)
	case line == "nvidia-imex-ctl -N -j":
		if t.imex != "" {
			return said(t.imex, 0)
		}
		return said(`{"nodes":{"0":{"status":"READY","host":"10.0.0.19"},"1":{"status":"READY","host":"10.0.0.20"},"2":{"status":"READY","host":"10.0.0.18"},"3":{"status":"READY","host":"10.0.0.17"}},"status":"UP"}`, 0)
	}
	return onnode.Output{}, nil, false
}

func (t *trays) smi(node string) string {
	good := "Completed Success " + node[:1] + "a000000-0000-0000-0000-000000000000 7"
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n<driver_version>580.95.05</driver_version>\n")
	for i, text := range []string{good, t.fabric[node]} {
		if text == "" {
			text = good
		}
		w := strings.Fields(text)
		fmt.Fprintf(&b, "<gpu id=\"0000000%d:01:00.0\"><serial>165%d</serial><fabric><state>%s</state><status>%s</status><cliqueId>%s</cliqueId><clusterUuid>%s</clusterUuid></fabric></gpu>\n", i, i, w[0], w[1], w[3], w[2])
	}
	return b.String() + "</nvidia_smi_log>\n"
}

// bringUp applies the fabric on every node, and compares the domains.
func (t *trays) bringUp(tt *testing.T) (map[string]error, *onnodetest.Run, error) {
	tt.Helper()
	k, run, errs := New(t.inv, t.Nodes), onnodetest.NewRun(), map[string]error{}
	for _, n := range t.inv.Nodes {
		if _, err := k.Apply(tt.Context(), run, t.f, n); err != nil {
			errs[n.Name] = err
		}
	}
	st := k.Steps(nil, t.f, k.Members(t.f), nil)[0]
	return errs, run, k.ApplyStep(tt.Context(), run, t.f, st)
}

func TestBringsDomainsUp(t *testing.T) {
	t.Parallel()
	x := newTrays()
	x.Put("a1", configFile, []byte("LOG_LEVEL=4\nIMEX_CMD_ENABLED=0\nIMEX_CMD_PORT=50005"))
	k := New(x.inv, x.Nodes)
	if o, _, err := k.Observe(t.Context(), onnodetest.NewRun(), x.f, x.inv.Nodes[1]); err != nil || o.State != stage.Differs {
		t.Errorf("before: %+v %v", o, err)
	}
	errs, run, err := x.bringUp(t)
	if err != nil || len(errs) > 0 || len(run.Findings) > 0 {
		t.Fatalf("%v %v %+v", err, errs, run.Findings)
	}
	for node, want := range map[string]string{"a1": "10.0.0.19\n10.0.0.20\n", "a2": "10.0.0.19\n10.0.0.20\n", "b1": "10.0.0.17\n10.0.0.18\n"} {
		if got, _ := x.File(node, nodesFile); string(got) != want {
			t.Errorf("%s has %q", node, got)
		}
	}
	if got, _ := x.File("a1", configFile); string(got) != "LOG_LEVEL=4\nIMEX_CMD_ENABLED=1\nIMEX_CMD_PORT=50005\n" {
		t.Errorf("config.cfg is %q", got)
	}
	before := len(x.Calls("systemctl restart"))
	for _, n := range x.inv.Nodes {
		if o, _, err := k.Observe(t.Context(), run, x.f, n); err != nil || o.State != stage.Conforms {
			t.Errorf("%s: %+v %v", n.Name, o, err)
		}
	}
	if _, _, err := x.bringUp(t); err != nil || len(x.Calls("systemctl restart")) != before {
		t.Errorf("the second time services were restarted: %v", err)
	}
	if steps := GateSteps(x.inv); !slices.Equal(steps, []plan.StepID{fabric.PartID("site", "nv", partDomains)}) {
		t.Errorf("gates %v", steps)
	}
}

// TestNodesAlone: what is wrong with one node is its own step's failure.
func TestNodesAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fabric, want string
		kind         errkind.Kind
	}{
		"in progress":   {"In_Progress N/A x 7", "is not in the NVLink fabric: state In_Progress, and 1 of 2 GPUs of the node are in it after 3m", errkind.Mismatch},
		"refused":       {"Completed Failure x 7", "could not join the NVLink fabric: Failure", errkind.Mismatch},
		"two cliques":   {"Completed Success other 7", "and other GPUs of it in aa000000", errkind.Conflict},
		"not supported": {"N/A N/A N/A N/A", "knows no NVLink fabric", errkind.Mismatch},
		"no clique":     {"Completed Success x N/A", "does not say which clique", errkind.Invalid},
	} {
		x := newTrays()
		x.fabric["a1"] = c.fabric
		errs, run, err := x.bringUp(t)
		if err != nil || len(errs) != 1 || errs["a1"] == nil || !strings.Contains(errs["a1"].Error(), c.want) || errkind.Of(errs["a1"]) != c.kind || errkind.Action(errs["a1"]) == "" ||
			len(run.Findings) != 1 || run.Findings[0].Suspects[0] != (stage.Suspect{Subject: subject.OfNode("a1"), Part: "NVLink"}) || run.Findings[0].Action == "" {
			t.Errorf("%s: %v %v %+v", name, err, slices.Collect(maps.Values(errs)), run.Findings)
		}
	}
}

// TestListOfAJob: a list that the service's start changes is the node's own fault,
// whose difference is said; nobody else is suspected.
func TestListOfAJob(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"10.0.0.19\n":                       "it lacks 10.0.0.20",
		"10.0.0.19\n10.0.0.20\n10.0.0.17\n": "it has 10.0.0.17 besides",
		"10.0.0.20\n10.0.0.19\n":            "the same addresses in another order or form",
		"10.0.0.20\n10.0.0.1\n10.0.0.2\n":   "it lacks 10.0.0.19, and has 10.0.0.1, 10.0.0.2",
	} {
		x := newTrays()
		x.prolog = map[string]string{"a1": list}
		errs, run, err := x.bringUp(t)
		if err != nil || len(errs) != 1 || errs["a1"] == nil || !strings.HasSuffix(errs["a1"].Error(), want) || len(run.Findings) != 1 || run.Findings[0].Suspects[0].Part != "IMEX" {
			t.Errorf("%q: %v %v %+v", list, err, errs["a1"], run.Findings)
		}
	}
}

// TestDomains: who is not with the others of its domain is found by name.
func TestDomains(t *testing.T) {
	t.Parallel()
	suspects := func(run *onnodetest.Run) string {
		var all []string
		for _, f := range run.Findings {
			all = append(all, f.Suspects[0].Subject.Name+" "+f.Suspects[0].Part)
			if f.Action == "" || len(f.Evidence) == 0 {
				t.Errorf("finding without evidence or action: %+v", f)
			}
		}
		return strings.Join(all, ", ")
	}
	x := newTrays()
	for i := range 2 { // a domain of four, one of which is in another clique
		x.inv.Nodes[2+i].Domain = "nv-a"
	}
	x.inv.Nodes[3].Domain = "nv-a"
	x.inv.Nodes[2].Name = "a3"
	_, run, err := x.bringUp(t)
	if err != nil || suspects(run) != "b2 NVLink" {
		t.Errorf("of another clique: %v, %s", err, suspects(run))
	}
	x = newTrays()
	x.imex = `{"nodes":{"0":{"status":"READY","host":"10.0.0.20"},"1":{"status":"UNAVAILABLE","host":"10.0.0.19"},"2":{"status":"READY","host":"10.0.0.18"},"3":{"status":"READY","host":"10.0.0.17"}},"status":"DEGRADED"}`
	began := time.Now()
	_, run, err = x.bringUp(t)
	if err != nil || suspects(run) != "a1 IMEX" || time.Since(began) > time.Minute {
		t.Errorf("an IMEX that does not answer: %v, %s", err, suspects(run))
	}
	x = newTrays()
	x.inv.Nodes[2].Name, x.inv.Nodes[3].Name = "a3", "a4" // whose GPUs say that they are in nv-a's clique
	if _, _, err = x.bringUp(t); err == nil || !strings.Contains(err.Error(), "domains nv-a and nv-b of fabric nv are one NVLink domain") {
		t.Errorf("duplicates: %v", err)
	}
}

func TestNodesWithoutDriverAreNoMembers(t *testing.T) {
	t.Parallel()
	x := newTrays()
	x.inv.Nodes[0].Drivers = nil
	if got := len(New(x.inv, nil).Members(x.f)); got != 3 {
		t.Errorf("%d members", got)
	}
}

func FuzzIMEX(f *testing.F) {
	f.Add([]byte(`{"nodes":{"0":{"status":"READY","host":"10.0.0.1"}},"status":"UP"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if status, nodes, err := parseIMEX(b); (status == "") != (err != nil) || err == nil && nodes == nil {
			t.Errorf("%q: %q %v %v", b, status, nodes, err)
		}
		if again := withCommands(withCommands(b)); string(again) != string(withCommands(b)) {
			t.Errorf("%q: not the same the second time", b)
		}
	})
}
