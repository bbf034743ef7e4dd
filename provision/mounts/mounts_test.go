// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// machine is a node with systemd, of which only mounts are looked at.
type machine struct {
	onnodetest.Nodes
	table   map[string]string // by place: a line of /proc/self/mounts
	enabled map[string]bool
	broken  map[string]string // by unit: what mount(8) says
	hangs   string            // the place whose server is gone
	busy    string            // the place that cannot be unmounted
	content map[string]string // of folders
	removed []string
}

func newMachine() *machine {
	m := &machine{table: map[string]string{"/": "/dev/vda2 / ext4 rw 0 0"}, enabled: map[string]bool{}, broken: map[string]string{}, content: map[string]string{}}
	m.Rules = []onnodetest.Rule{m.answer}
	return m
}

func (m *machine) answer(_ context.Context, c onnodetest.Call) (out onnode.Output, _ error, known bool) {
	last := c.Argv[len(c.Argv)-1]
	switch c.Argv[0] {
	case "cat":
		if last == "/proc/self/mounts" {
			for _, line := range m.table {
				out.Stdout = append(out.Stdout, line+"\n"...)
			}
			return out, nil, true
		}
		file, there := m.File("n1", last)
		if !there || slices.Contains(m.removed, last) {
			out.Exit = 1
		}
		out.Stdout = file
	case "test":
		if _, there := m.File("n1", last); !there || slices.Contains(m.removed, last) {
			out.Exit = 1
		}
	case "rm":
		m.removed = append(m.removed, last)
	case "ls":
		out.Stdout = []byte(m.content[last])
	case "timeout":
		if last == m.hangs {
			out.Exit = 124
		}
	case "journalctl":
		unit := strings.TrimPrefix(last, "--unit=")
		out.Stdout = []byte("Mounting " + unit + "...\n" + m.broken[unit] + "\n" + unit + ": Failed with result 'exit-code'.\n")
	case "systemctl":
		return m.systemctl(c.Argv[1], last), nil, true
	default:
		return out, nil, false
	}
	return out, nil, true
}

func (m *machine) systemctl(verb, unit string) (out onnode.Output) {
	file, _ := m.File("n1", "/etc/systemd/system/"+unit)
	value := func(key string) string {
		_, after, _ := strings.Cut(string(file), "\n"+key+"=")
		text, _, _ := strings.Cut(after, "\n")
		return text
	}
	where := value("Where")
	switch verb {
	case "start", "restart":
		if m.broken[unit] != "" {
			out.Exit = 1
			return out
		}
		how, _, _ := strings.Cut(value("Options"), ",")
		if how != "ro" {
			how = "rw"
		}
		m.table[where] = fmt.Sprintf("%s %s %s %s,relatime 0 0", value("What"), where, strings.Replace(value("Type"), "nfs", "nfs4", 1), how)
	case "enable":
		m.enabled[unit] = true
	case "disable":
		delete(m.enabled, unit)
		if where != m.busy {
			delete(m.table, where)
		}
	case "is-enabled":
		if !m.enabled[unit] {
			out.Exit, out.Stdout = 1, []byte("disabled\n")
		}
	case "is-active":
		if m.table[where] == "" {
			out.Exit = 3
		}
	}
	return out
}

func site(list ...inventory.Mount) *inventory.Inventory {
	image := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}
	role := &inventory.Role{Name: "worker", Mounts: list}
	return &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Image: image, Role: role}, {Name: "n2", Image: image, Role: &inventory.Role{}}}}
}

var (
	scratch = inventory.Mount{Path: "/scratch", Type: "nfs", Source: "10.0.0.9:/scratch", Options: []string{"nconnect=8"}}
	tools   = inventory.Mount{Path: "/opt/tools", Type: "nfs", Source: "10.0.0.9:/tools", Options: []string{"ro"}}
)

func ready(n *inventory.Node) []plan.Need {
	return []plan.Need{{Step: plan.StepID(n.Name + "/install.boot"), On: plan.Success, Triggers: true}}
}

// step applies the step of n1 and returns what came of it.
func step(t *testing.T, m *machine, run *onnodetest.Run, list ...inventory.Mount) error {
	t.Helper()
	s := New(site(list...), m, ready)
	steps, _ := s.Plan(run)
	if len(steps) != 1 || steps[0].ID != "n1/mounts.shared" {
		t.Fatalf("steps %+v", steps)
	}
	return s.Apply(t.Context(), run, steps[0])
}

func observe(t *testing.T, m *machine, run *onnodetest.Run, list ...inventory.Mount) stage.Observation {
	t.Helper()
	o, err := New(site(list...), m, ready).Observe(t.Context(), run, plan.Step{ID: "n1/mounts.shared", Subject: subject.OfNode("n1")})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What is mounted is recorded; what leaves the files is unmounted, and then nothing is left to do.
func TestMountAndTakeBack(t *testing.T) {
	t.Parallel()
	m, run := newMachine(), onnodetest.NewRun(subject.OfNode("n1"))
	if o := observe(t, m, run, scratch, tools); o.State != stage.Differs || !strings.Contains(o.Evidence, "/scratch is not mounted; /opt/tools is not mounted") {
		t.Errorf("before: %+v", o)
	}
	if err := step(t, m, run, scratch, tools); err != nil {
		t.Fatal(err)
	}
	if o := observe(t, m, run, scratch, tools); o.State != stage.Conforms {
		t.Errorf("after: %+v", o)
	}
	m.busy = "/opt/tools"
	if err := step(t, m, run, scratch); errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), "/opt/tools is mounted still") {
		t.Errorf("in use: %v", err)
	}
	m.busy = ""
	if err := step(t, m, run, scratch); err != nil {
		t.Fatal(err)
	}
	if m.table["/opt/tools"] != "" || m.table["/scratch"] == "" || !slices.Contains(m.removed, "/etc/systemd/system/opt-tools.mount") {
		t.Errorf("mounted %v, removed %v", m.table, m.removed)
	}
	if err := step(t, m, run); err != nil {
		t.Fatal(err)
	}
	if steps, _ := New(site(), m, ready).Plan(run); len(steps) != 0 {
		t.Errorf("steps of a node that mounts nothing: %+v", steps)
	}
}

// Everything that is wrong with what is mounted is seen.
func TestObserve(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*machine)
		want  string
	}{
		"another source":   {func(m *machine) { m.table["/scratch"] = "10.0.0.8:/old /scratch nfs4 rw 0 0" }, `at /scratch "10.0.0.8:/old" is mounted, not "10.0.0.9:/scratch"`},
		"another type":     {func(m *machine) { m.table["/scratch"] = "10.0.0.9:/scratch /scratch tmpfs rw 0 0" }, `of type "tmpfs" is mounted, not "nfs"`},
		"read-only":        {func(m *machine) { m.table["/scratch"] = "10.0.0.9:/scratch /scratch nfs4 ro 0 0" }, "is to be read-only: false"},
		"a server is gone": {func(m *machine) { m.hangs = "/scratch" }, "/scratch is mounted and does not answer"},
		"not at a start":   {func(m *machine) { m.enabled = map[string]bool{} }, "will not be after a restart: its unit is disabled"},
		"an edited unit":   {func(m *machine) { m.Put("n1", "/etc/systemd/system/scratch.mount", []byte("[Mount]\n")) }, "/etc/systemd/system/scratch.mount is not as the files say"},
		"unmounted":        {func(m *machine) { delete(m.table, "/scratch") }, "/scratch is not mounted"},
	} {
		m, run := newMachine(), onnodetest.NewRun(subject.OfNode("n1"))
		if err := step(t, m, run, scratch); err != nil {
			t.Fatal(err)
		}
		c.spoil(m)
		if o := observe(t, m, run, scratch); o.State != stage.Differs || !strings.Contains(o.Evidence, c.want) {
			t.Errorf("%s: %+v, want %q", name, o, c.want)
		}
	}
}

// A server that refuses is named with what mount(8) said of it.
func TestRefusedMount(t *testing.T) {
	t.Parallel()
	m, run := newMachine(), onnodetest.NewRun(subject.OfNode("n1"))
	m.broken["scratch.mount"] = "mount.nfs: access denied by server while mounting 10.0.0.9:/scratch"
	err := step(t, m, run, tools, scratch)
	if errkind.Of(err) != errkind.Mismatch || len(run.Findings) != 1 {
		t.Fatalf("%v, findings %+v", err, run.Findings)
	}
	f := run.Findings[0]
	if f.Cause != "/scratch is not mounted: mount.nfs: access denied by server while mounting 10.0.0.9:/scratch" || len(f.Suspects) != 1 || f.Suspects[0].Part != "mount /scratch" || f.Action == "" {
		t.Errorf("%+v", f)
	}
}

// Nothing is mounted over files.
func TestFilesThatWouldBeHidden(t *testing.T) {
	t.Parallel()
	m, run := newMachine(), onnodetest.NewRun(subject.OfNode("n1"))
	m.content["/scratch"] = "results\n"
	err := step(t, m, run, scratch)
	if errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), "/scratch is not empty (results is there)") || m.table["/scratch"] != "" {
		t.Errorf("%v, mounted %v", err, m.table)
	}
	if len(run.Effects) != 0 {
		t.Errorf("effects %v", run.Effects)
	}
}

// A node is accepted with its file systems, and its image has the program that they need.
func TestPlan(t *testing.T) {
	t.Parallel()
	inv := site(scratch)
	s := New(inv, nil, ready)
	if d := s.Check(); len(d) != 1 || !strings.Contains(d[0].Detail, `mount "/scratch" of role "worker" is of type "nfs", which needs package "nfs-common"`) {
		t.Errorf("%v", d)
	}
	inv.Nodes[0].Image.Packages = []string{"nfs-common=1:2.6"}
	if d := s.Check(); d.HasErrors() {
		t.Errorf("%v", d)
	}
	inv.Nodes[0].Image.Kind, inv.Nodes[0].Image.Packages = "rhel", nil
	if d := s.Check(); len(d) != 1 || !strings.Contains(d[0].Detail, `"nfs-utils"`) {
		t.Errorf("%v", d)
	}
	steps, _ := s.Plan(onnodetest.NewRun())
	if len(steps) != 1 || len(steps[0].Needs) != 1 || steps[0].Inputs[0] != (plan.Input{Name: "mount /scratch", Value: "nfs 10.0.0.9:/scratch nconnect=8", Decl: steps[0].Inputs[0].Decl}) {
		t.Errorf("%+v", steps)
	}
	accept := func(node string) plan.StepID { return plan.StepID(node + "/validate.accept") }
	woven := Weave(inv, []plan.Step{{ID: "n1/validate.accept"}, {ID: "n2/validate.accept"}}, accept)
	if n := woven[0].Needs; len(n) != 1 || n[0].Step != "n1/mounts.shared" || len(woven[1].Needs) != 0 {
		t.Errorf("%+v", woven)
	}
}
