// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/slurm"
)

// answers are what programs of Slurm print, by the first words of the command; an
// error text makes them fail.
type answers map[string]string

func (a answers) run(_ context.Context, _ string, argv ...string) ([]byte, error) {
	line := strings.Join(argv, " ")
	for prefix, text := range a {
		if strings.HasPrefix(line, prefix) {
			if bad, ok := strings.CutPrefix(text, "error: "); ok {
				return nil, errkind.New(errkind.Unreachable, "%s", bad)
			}
			return []byte(text), nil
		}
	}
	return nil, nil
}

// TestDrainAsks: what slurmctld says of a node decides whether it is drained, and
// nothing but the very answer that it does not know the node stands for no jobs.
func TestDrainAsks(t *testing.T) {
	t.Parallel()
	const show, queue = "scontrol -o show node n1", "squeue"
	idle := "NodeName=n1 Arch=x86_64 NodeAddr=10.77.0.11 State=IDLE ThreadsPerCore=1\n"
	for name, c := range map[string]struct {
		says    answers
		options handover.DrainOptions
		want    string // "": drained
	}{
		"idle":                         {says: answers{show: idle}},
		"not known":                    {says: answers{show: "error: scontrol: exit status 1: Node n1 not found"}},
		"no scontrol there":            {says: answers{show: "error: exit status 127: scontrol: command not found"}, want: "command not found"},
		"silent":                       {says: answers{show: "error: Unable to contact slurm controller"}, want: "whether jobs run on n1 is not known"},
		"silent, and nobody minds":     {says: answers{show: "error: Unable to contact slurm controller"}, options: handover.DrainOptions{Unknown: true}},
		"a job":                        {says: answers{show: idle, queue: "7_1|kim|RUNNING|1:00|n1|my|job\n"}, want: "1 jobs run on n1: 7_1 of kim (running, 1:00 left)"},
		"a job, and nobody minds":      {says: answers{show: idle, queue: "7_1|kim|COMPLETING|0:00|n1|x\n"}, options: handover.DrainOptions{Unknown: true}, want: "1 jobs run on n1"},
		"a job that only waits":        {says: answers{show: idle, queue: "7|kim|PENDING|1:00||x\n"}},
		"a queue that cannot be read":  {says: answers{show: idle, queue: "slurm is migrating\n"}, want: "which is no job"},
		"squeue fails":                 {says: answers{show: idle, queue: "error: Socket timed out"}, want: "Socket timed out"},
		"another cluster's node":       {says: answers{show: strings.Replace(idle, "10.77.0.11", "10.99.0.11", 1)}, want: "another cluster's"},
		"a state that cannot be read":  {says: answers{show: "NodeName=n1\n"}, want: "does not report the state"},
		"it does not let it be closed": {says: answers{show: idle, "scontrol update": "error: Access/permission denied"}, want: "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			st, run := threeOfFour(t)
			s := handover.New(site(slurmBlock()), map[string]handover.Kind{"slurm": slurm.New(dir, c.says.run)}, st)
			p := &plan.Plan{Steps: []plan.Step{steps(t, s)["n1/handover.drain"]}}
			handover.SetDrainOptions(p, c.options)
			err := s.Apply(t.Context(), run, p.Steps[0])
			_, busy := errors.AsType[*stage.BusyError](err)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !busy || !strings.Contains(err.Error(), c.want) || errkind.Action(err) == "" {
				t.Errorf("%v (%s)", err, errkind.Action(err))
			}
			if left, _ := os.ReadDir(filepath.Join(dir, "lab")); len(left) > 0 {
				t.Error("files were written")
			}
			if _, known := run.Fact(handover.DrainedFact.Of(subject.OfNode("n1"))); known {
				t.Error("it is remembered as drained")
			}
		})
	}
}

// TestJobsOfTheNodeItself: jobs, or none, of a node of the same name in another cluster say nothing.
func TestJobsOfTheNodeItself(t *testing.T) {
	t.Parallel()
	const idle = "NodeName=n1 Arch=x86_64 NodeAddr=10.77.0.11 State=IDLE ThreadsPerCore=1\n"
	st, _ := threeOfFour(t)
	for show, want := range map[string]string{idle: "", strings.Replace(idle, "10.77.0.11", "10.99.0.11", 1): "another cluster's"} {
		s := handover.New(site(slurmBlock()), map[string]handover.Kind{"slurm": slurm.New(t.TempDir(), answers{"scontrol -o show node n1": show}.run)}, st)
		if _, err := s.Jobs(t.Context(), "n1"); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", show, err)
		}
	}
}

// TestJobsOf: one look at the queue says of every node what runs on it, and what cannot be read says
// nothing of any.
func TestJobsOf(t *testing.T) {
	t.Parallel()
	const nodes = "NodeName=n1 NodeAddr=10.77.0.11 State=MIXED ThreadsPerCore=1\nNodeName=n2 NodeAddr=10.77.0.12 State=IDLE\nNodeName=n3 NodeAddr=10.99.0.13 State=IDLE\nNodeName=x1 NodeAddr=10.77.0.99 State=IDLE\n"
	for name, c := range map[string]struct{ show, queue, n1, n2, n3 string }{
		"jobs":                {nodes, "7|kim|RUNNING|1:00|n[1-2]|a|b\n8|kim|COMPLETING|0:00|n1,x1|c\n9|kim|PENDING|1:00||d\n", "7 of kim (running, 1:00 left), 8 of kim (completing, 0:00 left)", "7 of kim (running, 1:00 left)", "another cluster's"},
		"none":                {nodes, "", "", "", "another cluster's"},
		"not known":           {strings.Replace(nodes, "NodeName=n2", "NodeName=y2", 1), "", "", "", "another cluster's"},
		"nodes of two ranges": {nodes, "7|kim|RUNNING|1:00|n[1-2]x[1-2]|a\n", "of which scontrol knows no", "of which scontrol knows no", "of which scontrol knows no"},
		"no nodes":            {"No nodes in the system\n", "", "which is no node", "which is no node", "which is no node"},
		"nothing":             {"\n", "", "which is no node", "which is no node", "which is no node"},
		"silent":              {"error: Unable to contact slurm controller", "", "Unable to contact", "Unable to contact", "Unable to contact"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, _ := threeOfFour(t)
			says := answers{"scontrol -o show node": c.show, "squeue -h -o": c.queue}
			s := handover.New(site(slurmBlock()), map[string]handover.Kind{"slurm": slurm.New(t.TempDir(), says.run)}, st)
			of := s.JobsOf(t.Context(), []string{"n1", "n2", "n3", "n9"})
			for node, want := range map[string]string{"n1": c.n1, "n2": c.n2, "n3": c.n3, "n9": ""} {
				jobs, err := of(t.Context(), node)
				got := handover.ListJobs(jobs)
				if err != nil {
					got = err.Error()
				}
				if got != want && (err == nil || want == "" || !strings.Contains(got, want)) {
					t.Errorf("%s: %q, want %q", node, got, want)
				}
			}
		})
	}
}

// TestDrainAsksAgain: with a time to wait, a scheduler that does not answer is asked
// until it does or the time is over, and nothing is done before it has answered.
func TestDrainAsksAgain(t *testing.T) {
	t.Parallel()
	const idle = "NodeName=n1 Arch=x86_64 NodeAddr=10.77.0.11 State=IDLE ThreadsPerCore=1\n"
	for _, c := range []struct {
		name   string
		silent int // answers that do not come
		wait   time.Duration
		want   string // "": drained
		asked  int    // at most, while it is silent
	}{
		{"it starts", 3, time.Minute, "", 3},
		{"it stays away", 1000, time.Minute, "whether jobs run on n1 is not known", 5},
		{"nobody waits", 1, 0, "whether jobs run on n1 is not known", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			st, run := threeOfFour(t)
			silent := 0
			ask := func(_ context.Context, _ string, argv ...string) ([]byte, error) {
				switch line := strings.Join(argv, " "); {
				case line == "scontrol -o show node n1" && silent < c.silent:
					silent++
					return nil, errkind.New(errkind.Unreachable, "Unable to contact slurm controller")
				case line == "scontrol -o show node n1":
					return []byte(idle), nil
				case silent < c.silent && strings.Contains(line, "update"):
					t.Errorf("%q before it answered", line)
				}
				return nil, nil
			}
			s := handover.New(site(slurmBlock()), map[string]handover.Kind{"slurm": slurm.New(t.TempDir(), ask)}, st)
			p := &plan.Plan{Steps: []plan.Step{steps(t, s)["n1/handover.drain"]}}
			handover.SetDrainOptions(p, handover.DrainOptions{Wait: c.wait})
			err := s.Apply(t.Context(), run, p.Steps[0])
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if silent > c.asked || c.asked > 1 && silent < 2 {
				t.Errorf("asked %d times in vain", silent)
			}
		})
	}
}

// TestPeerRealDrain drains and resumes a node at the real slurmctld; one that somebody
// else has drained stays so.
func TestPeerRealDrain(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "slurmctld", "scontrol", "squeue")
	if os.Geteuid() != 0 {
		t.Skip("needs root: SlurmUser is root")
	}
	dir := t.TempDir()
	st, run := threeOfFour(t)
	var conf string
	ask := func(ctx context.Context, _ string, argv ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said.String())
		}
		return out, err
	}
	kind := slurm.New(dir, ask)
	s := handover.New(site(slurmBlock()), map[string]handover.Kind{"slurm": kind}, st)
	if err := slurm.New(dir, nil).Apply(t.Context(), run, handover.Target{Handover: slurmBlock(), Members: members(t, run, st)}); err != nil {
		t.Fatal(err)
	}
	conf = startSlurm(t, filepath.Join(dir, "lab"))
	show := func(node string) string {
		out, err := ask(t.Context(), "", "scontrol", "-o", "show", "node", node)
		if err != nil {
			t.Fatal(err, string(out))
		}
		return string(out)
	}
	drain := func(node string) {
		t.Helper()
		if err := s.Drain(t.Context(), run, node, handover.DrainOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, words := range []string{
		"NodeName=n1 State=DOWN Reason=test", "NodeName=n1 State=RESUME", // as a node whose slurmd has registered: else it is UNKNOWN
		"NodeName=n3 State=DRAIN Reason=fan_by_hand",
	} {
		if out, err := ask(t.Context(), "", append([]string{"scontrol", "update"}, strings.Fields(words)...)...); err != nil {
			t.Fatal(words, err, string(out))
		}
	}
	if jobs, err := s.JobsOf(t.Context(), []string{"n1", "n3"})(t.Context(), "n1"); err != nil || len(jobs) > 0 {
		t.Errorf("jobs of all nodes: %v, %v", jobs, err)
	}
	drain("n1")
	drain("n3")
	drain("n4") // slurmctld does not know it
	if got := show("n1"); !strings.Contains(got, "DRAIN") || !strings.Contains(got, "Reason=ironrail: is being changed") {
		t.Errorf("drained: %s", got)
	}
	tgt := handover.Target{Handover: slurmBlock(), Members: members(t, run, st)}
	if err := kind.Apply(t.Context(), run, tgt); err != nil {
		t.Fatal(err)
	}
	if got := show("n1"); strings.Contains(got, "DRAIN") {
		t.Errorf("resumed: %s", got)
	}
	if got := show("n3"); !strings.Contains(got, "DRAIN") || !strings.Contains(got, "Reason=fan_by_hand") {
		t.Errorf("somebody else's drain: %s", got)
	}
}

// members are the nodes of the site as a hand-over sees them.
func members(t *testing.T, run *onnodetest.Run, st *statuses) (list []handover.Member) {
	t.Helper()
	for _, n := range site(slurmBlock()).Nodes {
		m := handover.Member{Node: n, InService: st.in[n.Name], Known: n.Name != "n4"}
		m.Hardware.CPU.Sockets, m.Hardware.CPU.Cores, m.Hardware.CPU.Threads, m.Hardware.Memory.Usable = 2, 8, 16, 16<<30
		list = append(list, m)
	}
	return list
}

// startSlurm starts slurmctld with the files of dir until the test ends, and
// returns its configuration.
func startSlurm(t *testing.T, dir string) (conf string) {
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
	conf = filepath.Join(dir, "slurm.conf")
	text := fmt.Sprintf(slurmConf, strings.Split(host, ".")[0], freePort(t), freePort(t), dir)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	daemon := exec.CommandContext(ctx, "slurmctld", "-D", "-i", "-c", "-f", conf)
	daemon.WaitDelay = 5 * time.Second
	daemon.Cancel = func() error { return daemon.Process.Signal(os.Interrupt) }
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = daemon.Wait() })
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, "scontrol", "ping")
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		if out, err := cmd.CombinedOutput(); err == nil && strings.Contains(string(out), "is UP") {
			return conf
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("slurmctld does not come up")
	return ""
}
