// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/slurm"
)

var update = flag.Bool("update", false, "write golden files")

func slurmBlock() *inventory.Handover {
	return block("slurm", map[string]cty.Value{"controller": cty.StringVal("head"), "partition": cty.StringVal("lab"), "topology": cty.StringVal("tree")})
}

func slurmStage(dir string, st handover.NodeStatuses) *handover.Stage {
	return handover.New(site(slurmBlock()), map[string]handover.Kind{"slurm": slurm.New(dir, idle)}, st)
}

// idle is a slurmctld that knows every node, and no job.
func idle(_ context.Context, controller string, argv ...string) ([]byte, error) {
	if controller != "head" {
		return nil, fmt.Errorf("asked at %q", controller)
	}
	switch {
	case slices.Equal(argv, []string{"scontrol", "show", "config"}):
		return []byte("Configuration data as of 2026-11-22T13:50:00\nGresTypes               = gpu\nSLURM_VERSION           = 22.05.8\nTopologyPlugin          = topology/tree\n"), nil
	case argv[0] == "scontrol" && len(argv) == 5:
		return []byte("NodeName=" + argv[4] + " State=IDLE\n"), nil
	}
	return nil, nil
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("%s differs (%v); got:\n%s", file, err, got)
	}
}

// threeOfFour: n1 and n3 are in service, n2 was and is not, n4 never was.
func threeOfFour(t *testing.T) (*statuses, *onnodetest.Run) {
	t.Helper()
	st := &statuses{in: map[string]bool{"n1": true, "n3": true}, why: map[string]string{"n2": "rail 0 is slow; see \"evidence\" # 3\nSuspicious"}}
	run := onnodetest.NewRun()
	for _, n := range []string{"n1", "n2", "n3"} {
		accept(t, run, n, run.Now)
	}
	return st, run
}

func TestSlurmFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, run := threeOfFour(t)
	s := slurmStage(dir, st)
	step := steps(t, s)["site/handover.lab"]
	ctx := t.Context()
	if o, err := s.Observe(ctx, run, step); err != nil || o.State != stage.Differs {
		t.Fatalf("before: %v %v", o, err)
	}
	if err := s.Apply(ctx, run, step); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nodes.conf", "topology.conf"} {
		b, err := os.ReadFile(filepath.Join(dir, "lab", name))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, b)
	}
	if o, err := s.Observe(ctx, run, step); err != nil || o.State != stage.Conforms {
		t.Fatalf("after: %v %v", o, err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "lab"))
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v %v", left, err)
	}

	// A file of an earlier form is removed also where all others are as they should be.
	for _, name := range []string{"topology.yaml", "gres.conf"} {
		path := filepath.Join(dir, "lab", name)
		if err := os.WriteFile(path, []byte("left"), 0o644); err != nil {
			t.Fatal(err)
		}
		if o, err := s.Observe(ctx, run, step); err != nil || o.State != stage.Differs || o.Evidence != name+" is left from before" {
			t.Errorf("with %s: %v %v", name, o, err)
		}
		if err := s.Apply(ctx, run, step); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}

	// n1 is drained: its line says so, and nobody else's changes.
	if err := s.Apply(ctx, run, steps(t, s)["n1/handover.drain"]); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(filepath.Join(dir, "lab", "nodes.conf"))
	if !strings.Contains(string(b), `ThreadsPerCore=2 RealMemory=15893 State=DRAIN Reason="ironrail: is being changed"`) || strings.Count(string(b), "State=UNKNOWN") != 1 {
		t.Errorf("after the drain:\n%s", b)
	}
	if o, err := s.Observe(ctx, run, step); err != nil || o.State != stage.Differs {
		t.Errorf("while drained: %v %v", o, err)
	}
}

func TestSlurmWithoutHardware(t *testing.T) {
	t.Parallel()
	st := &statuses{in: map[string]bool{"n1": true}}
	s := slurmStage(t.TempDir(), st)
	if err := s.Apply(t.Context(), onnodetest.NewRun(), steps(t, s)["site/handover.lab"]); err == nil || !strings.Contains(err.Error(), "node n1 are not known") {
		t.Errorf("got %v", err)
	}
}

func TestSlurmDiagnostics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		set        func(*inventory.Inventory)
		line       int
	}{
		{"block", "Topology is not in this version", func(i *inventory.Inventory) {
			*i.Handovers[0] = *block("slurm", map[string]cty.Value{"topology": cty.StringVal("block"), "version": cty.StringVal("22.05")})
		}, 73},
		{"partition", "Partition name is not possible", func(i *inventory.Inventory) {
			*i.Handovers[0] = *block("slurm", map[string]cty.Value{"partition": cty.StringVal("a b")})
		}, 72},
		{"node", "Node name is not possible in Slurm", func(i *inventory.Inventory) { i.Nodes[0].Name = "n[1-3]" }, 70},
		{"kind", "Handover kind is not supported", func(i *inventory.Inventory) { i.Handovers[0].Kind = "kubernetes" }, 70},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := site(slurmBlock())
			c.set(inv)
			_, diags := handover.New(inv, map[string]handover.Kind{"slurm": slurm.New("", nil)}, nil).Plan(onnodetest.NewRun())
			if len(diags) != 1 || diags[0].Summary != c.want || diags[0].Subject.Start.Line != c.line {
				t.Errorf("got %v", diags)
			}
		})
	}
}

const slurmConf = `ClusterName=test
GresTypes=gpu
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[2]d
SlurmdPort=%[3]d
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=%[4]s/state
SlurmdSpoolDir=%[4]s/spool
SlurmctldPidFile=%[4]s/slurmctld.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
TopologyPlugin=topology/tree
include %[4]s/nodes.conf
`

// TestPeerRealSlurmctld gives the files to the real slurmctld and asks it what it
// read.
func TestPeerRealSlurmctld(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "slurmctld", "scontrol")
	if os.Geteuid() != 0 {
		t.Skip("needs root: SlurmUser is root")
	}
	for _, c := range []struct {
		name string
		in   map[string]bool
		want []string
	}{
		{"three nodes", map[string]bool{"n1": true, "n3": true}, []string{
			"NodeName=n1 ", "CoresPerSocket=4", "CPUTot=16", "RealMemory=15893", "State=UNKNOWN+DRAIN", "Reason=ironrail: rail 0 is slow; see .evidence. . 3.Suspicious",
			"SwitchName=r01 Level=0 LinkSpeed=1 Nodes=n[1-2]", "SwitchName=r02 Level=0 LinkSpeed=1 Nodes=n3", "SwitchName=site Level=1 LinkSpeed=1 Nodes=n[1-3] Switches=r[01-02]", "PartitionName=lab", "TotalNodes=3", " Default=YES "}},
		{"all out", nil, []string{"State=UNKNOWN+DRAIN", "PartitionName=lab"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			st, run := threeOfFour(t)
			st.in = c.in
			s := slurmStage(dir, st)
			if err := s.Apply(t.Context(), run, steps(t, s)["site/handover.lab"]); err != nil {
				t.Fatal(err)
			}
			got := askSlurm(t, filepath.Join(dir, "lab"))
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("slurmctld does not say %q:\n%s", w, got)
				}
			}
		})
	}
}

// askSlurm starts slurmctld on loopback with the files of dir and returns what
// scontrol shows.
func askSlurm(t *testing.T, dir string) string {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"state", "spool"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(dir, "slurm.conf")
	text := fmt.Sprintf(slurmConf, strings.Split(host, ".")[0], freePort(t), freePort(t), dir)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	daemon := exec.CommandContext(ctx, "slurmctld", "-D", "-i", "-c", "-f", conf)
	var log bytes.Buffer
	daemon.Stdout, daemon.Stderr, daemon.WaitDelay = &log, &log, 5*time.Second
	daemon.Cancel = func() error { return daemon.Process.Signal(os.Interrupt) }
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = daemon.Wait() }()
	show := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "scontrol", append([]string{"-o"}, args...)...)
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for ctx.Err() == nil {
		if out, err := show("ping"); err == nil && strings.Contains(out, "is UP") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	var all string
	for _, what := range []string{"node", "topology", "partition"} {
		out, err := show("show", what)
		if err != nil {
			cancel()
			_ = daemon.Wait()
			t.Fatalf("show %s: %v: %s\n%s", what, err, out, log.String())
		}
		all += out
	}
	return all
}

// freePort is a port on which nobody listens now, of those that the kernel gives to nobody who
// asks for any (net.ipv4.ip_local_port_range begins at 32768): it is still free when the daemon
// that is given it asks for it.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 12_000 + rand.IntN(20_000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func TestPlanDrainsBeforeTheErasure(t *testing.T) {
	t.Parallel()
	inv := site(slurmBlock())
	prior := plan.Prior{Steps: map[plan.StepID]plan.LastSuccess{}, Nodes: map[string]plan.NodeState{}}
	var others []plan.Step
	for _, n := range inv.Nodes {
		n.Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}}
		me, id := subject.OfNode(n.Name), func(s string) plan.StepID { return plan.StepID(n.Name + s) }
		prior.Nodes[n.Name] = plan.NodeState{Accepted: true}
		others = append(others, plan.Step{ID: id("/bmc"), Subject: me, Only: plan.WhenNeeded}, plan.Step{ID: id("/install.write"), Subject: me, May: plan.Effects(plan.Erase), Erases: "disk os", Needs: []plan.Need{{Step: handover.DrainID(n.Name), On: plan.Success}}},
			plan.Step{ID: id("/install.boot"), Subject: me, Needs: []plan.Need{{Step: id("/install.write"), On: plan.Success, Triggers: true}}},
			plan.Step{ID: id("/validate.accept"), Subject: me, Needs: []plan.Need{{Step: id("/install.boot"), On: plan.Success, Triggers: true}}, Inputs: []plan.Input{{Name: "limit", Value: "1"}}})
	}
	list, _ := handover.New(inv, map[string]handover.Kind{"slurm": slurm.New("", nil)}, &statuses{}).Plan(onnodetest.NewRun())
	all := append(list, others...)
	for _, st := range all {
		prior.Steps[st.ID] = plan.LastSuccess{Version: st.Version, Inputs: st.Inputs}
	}
	planned := func(opt plan.Options) string {
		t.Helper()
		p, err := plan.Diff(all, prior, opt)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, st := range p.Steps {
			ids = append(ids, string(st.ID))
		}
		return strings.Join(ids, " ")
	}
	if got := planned(plan.Options{}); got != "" {
		t.Errorf("nothing to do, and yet %s", got)
	}
	if got := planned(plan.Options{Replace: map[string]bool{"n2": true}, MaxErase: 1}); got != "n2/bmc n2/handover.drain n2/install.write n2/install.boot n2/validate.accept site/handover.lab" {
		t.Errorf("replace n2: %s", got)
	}
	for i := range all {
		if all[i].ID == "n3/validate.accept" {
			all[i].Inputs = []plan.Input{{Name: "limit", Value: "2"}}
		}
	}
	if got := planned(plan.Options{}); got != "n3/validate.accept" {
		t.Errorf("a node that is accepted once more: %s", got)
	}
	delete(prior.Steps, "n4/validate.accept")
	if got := planned(plan.Options{}); got != "n3/validate.accept n4/validate.accept site/handover.lab" {
		t.Errorf("a node that is accepted for the first time: %s", got)
	}
}
