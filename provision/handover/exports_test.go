// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/ansible"
	"github.com/ironrail/ironrail/provision/handover/hostfile"
	"github.com/ironrail/ironrail/provision/handover/hostsfile"
	"github.com/ironrail/ironrail/provision/handover/nodelist"
	"github.com/ironrail/ironrail/provision/handover/slurm"
)

// listed is a cabled site whose nodes go to Slurm and are listed by all kinds of export,
// with the state that a test sets.
type listed struct {
	stage *handover.Stage
	inv   *inventory.Inventory
	st    *statuses
	run   *onnodetest.Run
	dir   string
}

func newListed(t *testing.T, attributes map[string]map[string]cty.Value) *listed {
	t.Helper()
	l := &listed{st: &statuses{in: map[string]bool{}, why: map[string]string{}}, run: onnodetest.NewRun(), dir: t.TempDir()}
	batch := block("slurm", map[string]cty.Value{"controller": cty.StringVal("10.77.0.3")})
	batch.Name = "batch"
	l.inv = cabled(batch)
	l.inv.Site.Domain = "dc1.example"
	for _, kind := range []string{ansible.Name, hostfile.Name, hostsfile.Name, nodelist.Name} {
		of := attributes[kind]
		if of == nil {
			of = map[string]cty.Value{}
		}
		h := block(kind, of)
		h.Export = true
		h.Name = kind + "-list"
		l.inv.Handovers = append(l.inv.Handovers, h)
		for _, n := range l.inv.Nodes {
			n.Exports = append(n.Exports, h)
		}
	}
	for i, n := range l.inv.Nodes {
		n.Role, n.Serial, n.UUID, n.Unit = &inventory.Role{Name: "gpu-worker"}, fmt.Sprintf("SN%03d", i), fmt.Sprintf("00000000-0000-0000-0000-%012d", i), i%4+1
		n.BMC.Address = netip.AddrFrom4([4]byte{10, 78, 0, byte(i)})
	}
	l.inv.Nodes[0].Hardware.NICs[0].Ports = []inventory.NICPort{{Rail: 0}, {Rail: 1}}
	for _, c := range l.inv.Cables { // the second cable of a node is of its second port
		if n, far := c.NodeEnd(); n.Node != nil && strings.HasSuffix(far.Switch.Name, "-1") {
			n.Port = 1
		}
	}
	l.stage = handover.New(l.inv, map[string]handover.Kind{
		slurm.Name: slurm.New(filepath.Join(l.dir, slurm.Name), release("24.05")), ansible.Name: ansible.New(filepath.Join(l.dir, ansible.Name), nil),
		hostfile.Name: hostfile.New(filepath.Join(l.dir, hostfile.Name), nil), hostsfile.Name: hostsfile.New(filepath.Join(l.dir, hostsfile.Name), nil), nodelist.Name: nodelist.New(filepath.Join(l.dir, nodelist.Name), nil),
	}, l.st)
	return l
}

// accept has nodes in service, inspected with two sockets of four cores and four GPUs on each.
func (l *listed) accept(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		l.st.in[n] = true
		accept(t, l.run, n, l.run.Now)
		l.inspect(t, n, wire.CPU{Sockets: 2, Cores: 8, Threads: 16}, 8)
	}
}

// inspect gives a node a hardware with so many GPUs, shared out among its sockets.
func (l *listed) inspect(t *testing.T, node string, cpu wire.CPU, gpus int) {
	t.Helper()
	hw := wire.Hardware{CPU: cpu, Memory: wire.Memory{Usable: 1 << 40}}
	for i := range gpus {
		socket := i * cpu.Sockets / gpus
		hw.PCI = append(hw.PCI, wire.PCI{Address: fmt.Sprintf("0000:%x8:00.0", i+1), Vendor: "10de", Class: "030200", Socket: &socket})
	}
	f, err := fact.Name[wire.Hardware]("node.hardware").New(subject.OfNode(node), hw, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.run.Learn(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// apply runs the hand-overs as planned now.
func (l *listed) apply(t *testing.T) {
	t.Helper()
	for id, st := range steps(t, l.stage) {
		if strings.HasPrefix(string(id), "site/") {
			if err := l.stage.Apply(t.Context(), l.run, st); err != nil {
				t.Fatalf("%s: %v", id, err)
			}
		}
	}
}

// read returns a written file.
func (l *listed) read(t *testing.T, kind, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, kind, kind+"-list", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestExports: the files list the nodes in service and no others, with their places.
func TestExports(t *testing.T) {
	t.Parallel()
	l := newListed(t, map[string]map[string]cty.Value{ansible.Name: {"groups": cty.ListVal([]cty.Value{cty.StringVal("gpu_nodes")}), "variables": cty.MapVal(map[string]cty.Value{"ansible_user": cty.StringVal("root")})}})
	l.accept(t, "gpu01", "gpu02", "gpu06")
	l.st.why["gpu03"] = "a GPU is missing"
	l.apply(t)
	for _, f := range [][2]string{{ansible.Name, ansible.FileName}, {ansible.Name, ansible.ScriptName}, {hostfile.Name, hostfile.FileName}, {hostfile.Name, hostfile.RankFileName}, {hostsfile.Name, hostsfile.FileName}, {nodelist.Name, nodelist.FileName}} {
		golden(t, "export-"+f[0]+"-"+f[1], []byte(l.read(t, f[0], f[1])))
	}
}

// TestExportForms: launchers read forms of their own.
func TestExportForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		attributes map[string]cty.Value
		want       string
	}{
		{"mpich by name", map[string]cty.Value{"form": cty.StringVal("mpich"), "hosts": cty.StringVal("name"), "slots": cty.NumberIntVal(4)}, "gpu01:4\n"},
		{"plain", map[string]cty.Value{"form": cty.StringVal("plain")}, "10.77.0.10\n"},
	} {
		l := newListed(t, map[string]map[string]cty.Value{hostfile.Name: c.attributes})
		l.accept(t, "gpu01")
		l.apply(t)
		if got := l.read(t, hostfile.Name, hostfile.FileName); !strings.HasSuffix(got, "lost.\n"+c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
		if _, err := os.Stat(filepath.Join(l.dir, hostfile.Name, "hostfile-list", hostfile.RankFileName)); err == nil {
			t.Errorf("%s: there is a rankfile, which only Open MPI reads", c.name)
		}
	}
	l := newListed(t, map[string]map[string]cty.Value{hostfile.Name: {"slots": cty.NumberIntVal(4)}})
	l.accept(t, "gpu01")
	l.apply(t)
	if got := l.read(t, hostfile.Name, hostfile.RankFileName); strings.Contains(got, "rank 0") || !strings.Contains(got, "# No ranks: which socket each GPU of gpu01") {
		t.Errorf("ranks that are no GPUs are bound: %s", got)
	}
}

// TestDrainLeavesTheLists: a drained node leaves the files with its drain, and comes back
// when it was accepted again; a node of no scheduler does as well.
func TestDrainLeavesTheLists(t *testing.T) {
	t.Parallel()
	l := newListed(t, nil)
	l.accept(t, "gpu01", "gpu02", "gpu06")
	l.inv.Nodes[1].Handover = nil
	l.apply(t)
	for _, name := range []string{"gpu01", "gpu02"} {
		if err := l.stage.Drain(t.Context(), l.run, name, handover.DrainOptions{Unknown: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range [][2]string{{ansible.Name, ansible.FileName}, {hostfile.Name, hostfile.FileName}, {hostsfile.Name, hostsfile.FileName}, {nodelist.Name, nodelist.FileName}} {
		got := l.read(t, f[0], f[1])
		if strings.Contains(got, "10.77.0.10") || strings.Contains(got, "10.77.0.11") || !strings.Contains(got, "10.77.0.21") {
			t.Errorf("after the drains %s has\n%s", f[1], got)
		}
	}
	l.accept(t, "gpu01", "gpu02")
	later := l.run.Now.Add(time.Hour)
	l.st.accepted = map[string]time.Time{"gpu01": later, "gpu02": later}
	l.apply(t)
	if got := l.read(t, hostfile.Name, hostfile.FileName); !strings.Contains(got, "10.77.0.10 slots=8\n10.77.0.11 slots=8\n10.77.0.21 slots=8\n") {
		t.Errorf("after their acceptance: %s", got)
	}
}

// TestExportsAreWrittenWhenTheyChange: files that hold the nodes are left alone, and one
// that somebody changed is written again.
func TestExportsAreWrittenWhenTheyChange(t *testing.T) {
	t.Parallel()
	l := newListed(t, nil)
	l.accept(t, "gpu01")
	l.apply(t)
	step := steps(t, l.stage)["site/handover.hosts-list"]
	if o, err := l.stage.Observe(t.Context(), l.run, step); err != nil || o.State != "conforms" {
		t.Errorf("%+v, %v", o, err)
	}
	file := filepath.Join(l.dir, hostsfile.Name, "hosts-list", hostsfile.FileName)
	if err := os.WriteFile(file, []byte("10.0.0.1 other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if o, err := l.stage.Observe(t.Context(), l.run, step); err != nil || o.State != "differs" {
		t.Errorf("%+v, %v", o, err)
	}
	l.apply(t)
	if b, _ := os.ReadFile(file); !strings.Contains(string(b), "10.77.0.10\tgpu01.dc1.example gpu01\n") {
		t.Errorf("%s", b)
	}
}

// TestExportInputs: what the files depend on is declared: parts and places of nodes, and
// the attributes of the block.
func TestExportInputs(t *testing.T) {
	t.Parallel()
	inputs := func(attributes map[string]map[string]cty.Value, change func(*listed)) map[string]string {
		t.Helper()
		l, out := newListed(t, attributes), map[string]string{}
		change(l)
		for id, st := range steps(t, l.stage) {
			if name, ok := strings.CutSuffix(string(id), "-list"); ok {
				out[strings.TrimPrefix(name, "site/handover.")] = st.Inputs[0].Value
			}
		}
		return out
	}
	none := func(*listed) {}
	before := inputs(nil, none)
	for _, c := range []struct {
		name       string
		attributes map[string]map[string]cty.Value
		change     func(*listed)
		want       []string // kinds that are written again
	}{
		{"nothing", nil, none, nil},
		{"a serial number", nil, func(l *listed) { l.inv.Nodes[7].Serial = "ANOTHER" }, []string{ansible.Name, hostfile.Name, nodelist.Name}},
		{"an address", nil, func(l *listed) { l.inv.Nodes[7].Address = netip.MustParseAddr("10.77.0.99") }, []string{ansible.Name, hostfile.Name, hostsfile.Name, nodelist.Name}},
		{"a cable", nil, func(l *listed) { l.inv.Cables[len(l.inv.Cables)-1].To.Port = 9 }, []string{ansible.Name, hostfile.Name, nodelist.Name}},
		{"slots", map[string]map[string]cty.Value{hostfile.Name: {"slots": cty.NumberIntVal(2)}}, none, []string{hostfile.Name}},
		{"variables", map[string]map[string]cty.Value{ansible.Name: {"variables": cty.MapVal(map[string]cty.Value{"a": cty.StringVal("b")})}}, none, []string{ansible.Name}},
		{"groups", map[string]map[string]cty.Value{ansible.Name: {"groups": cty.ListVal([]cty.Value{cty.StringVal("g")})}}, none, []string{ansible.Name}},
	} {
		var changed []string
		for kind, value := range inputs(c.attributes, c.change) {
			if value != before[kind] {
				changed = append(changed, kind)
			}
		}
		slices.Sort(changed)
		if !slices.Equal(changed, c.want) {
			t.Errorf("%s: %v are written again, want %v", c.name, changed, c.want)
		}
	}
}

// TestNodeListSchema: the document is what its schema says, whole, without inspections and
// without nodes; and the schema refuses what it does not know.
func TestNodeListSchema(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(nodelist.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	l := newListed(t, nil)
	check := func(what, text string, good bool) {
		t.Helper()
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != good {
			t.Errorf("%s: %v", what, err)
		}
	}
	l.apply(t)
	check("no node", l.read(t, nodelist.Name, nodelist.FileName), true)
	l.accept(t, "gpu01", "gpu06")
	l.st.in["gpu02"], l.inv.Nodes[1].Handover = true, nil // adopted, and never inspected
	l.apply(t)
	whole := l.read(t, nodelist.Name, nodelist.FileName)
	check("nodes", whole, true)
	check("a field that no schema has", strings.Replace(whole, `"serial"`, `"password"`, 1), false)
	check("another format", strings.Replace(whole, `"format": 1`, `"format": 2`, 1), false)
}

// hostile is a serial number that Ansible would run.
const hostile = `{{ lookup('pipe', 'echo r''un') }}{% set x = 1 %}{# no #}{{{<`

// TestAnsibleLiterals: no text of the site is an expression for Ansible, and other files have it as it is.
func TestAnsibleLiterals(t *testing.T) {
	t.Parallel()
	l := newListed(t, nil)
	l.inv.Nodes[0].Serial = hostile
	l.accept(t, "gpu01")
	l.apply(t)
	const want = `"{{ '{{' }} lookup('pipe', 'echo r''un') }}{{ '{%' }} set x = 1 %}{{ '{#' }} no #}{{ '{{' }}{<"`
	for _, f := range []string{ansible.FileName, ansible.ScriptName} {
		if got := l.read(t, ansible.Name, f); !strings.Contains(got, `"serial": `+want) {
			t.Errorf("%s:\n%s", f, got)
		}
	}
	if got := l.read(t, nodelist.Name, nodelist.FileName); !strings.Contains(got, hostile) {
		t.Errorf("nodes.json:\n%s", got)
	}
}

// TestPeerAnsibleLiterals: Ansible itself evaluates nothing of it.
func TestPeerAnsibleLiterals(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ansible-inventory") // ansible is of the same package
	l := newListed(t, nil)
	l.inv.Nodes[0].Serial = hostile
	l.accept(t, "gpu01")
	l.apply(t)
	file := filepath.Join(l.dir, ansible.Name, "ansible-list", ansible.FileName)
	cmd := exec.CommandContext(t.Context(), "ansible", "-i", file, "all", "-m", "debug", "-a", "var=ironrail.serial")
	cmd.Env = append(os.Environ(), "ANSIBLE_LOCAL_TEMP="+t.TempDir(), "ANSIBLE_STDOUT_CALLBACK=json", "LC_ALL=C.UTF-8")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if b, _ := json.Marshal(hostile); !strings.Contains(string(out), `"ironrail.serial": `+strings.ReplaceAll(string(b), `\u003c`, "<")) {
		t.Errorf("%s", out)
	}
}

// TestPeerAnsibleInventory: ansible-inventory reads the file and the output of a program
// alike, with every group and variable, and without a warning.
func TestPeerAnsibleInventory(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ansible-inventory")
	l := newListed(t, map[string]map[string]cty.Value{ansible.Name: {"groups": cty.ListVal([]cty.Value{cty.StringVal("gpu_nodes")}), "variables": cty.MapVal(map[string]cty.Value{"ansible_user": cty.StringVal("root")})}})
	l.inv.Racks = []*inventory.Rack{{Name: "r-01"}, {Name: "r_01"}} // the same letters for Ansible
	for i, n := range l.inv.Nodes {
		n.Rack = l.inv.Racks[i/4]
	}
	l.accept(t, "gpu01", "gpu02", "gpu06")
	l.apply(t)
	folder := filepath.Join(l.dir, ansible.Name, "ansible-list")
	script := filepath.Join(t.TempDir(), "inventory")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1\" = --list ] && exec cat '"+filepath.Join(folder, ansible.ScriptName)+"'\nexit 9\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ask := func(args ...string) map[string]json.RawMessage {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "ansible-inventory", args...)
		cmd.Env = append(os.Environ(), "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=true", "ANSIBLE_LOCAL_TEMP="+t.TempDir(), "LC_ALL=C.UTF-8", "ANSIBLE_DEPRECATION_WARNINGS=false")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil || strings.Contains(errs.String(), "WARNING") {
			t.Fatalf("ansible-inventory %v: %v\n%s", args, err, &errs)
		}
		var doc map[string]json.RawMessage
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	asFile, asScript := ask("-i", filepath.Join(folder, ansible.FileName), "--list"), ask("-i", script, "--list")
	if !reflect.DeepEqual(plain(t, asFile), plain(t, asScript)) {
		t.Errorf("as a file\n%s\nas a program\n%s", asFile, asScript)
	}
	for group, want := range map[string]string{
		"gpu_nodes": `["gpu01","gpu02","gpu06"]`, "rack_r_01": `["gpu01","gpu02"]`, "rack_r_01_2": `["gpu06"]`, "role_gpu_worker": `["gpu01","gpu02","gpu06"]`,
		"leaf_su1": `["gpu01","gpu02"]`, "nvlink_nvl2": `["gpu06"]`,
	} {
		var g struct{ Hosts []string }
		if err := json.Unmarshal(asFile[group], &g); err != nil {
			t.Errorf("group %s: %v", group, err)
		}
		if b, _ := json.Marshal(g.Hosts); string(b) != want {
			t.Errorf("group %s has %s, want %s", group, b, want)
		}
	}
	of := ask("-i", script, "--host", "gpu06")
	own, err := ansible.HostVariables([]byte(l.read(t, ansible.Name, ansible.ScriptName)), "gpu06")
	if err != nil {
		t.Fatal(err)
	}
	var mine map[string]json.RawMessage
	if err := json.Unmarshal(own, &mine); err != nil {
		t.Fatal(err)
	}
	mine["ansible_user"] = json.RawMessage(`"root"`) // of the group all
	if !reflect.DeepEqual(plain(t, of), plain(t, mine)) || string(of["ansible_host"]) != `"10.77.0.21"` {
		t.Errorf("ansible has %s, ironrail prints %s", of, own)
	}
	if none, err := ansible.HostVariables([]byte(l.read(t, ansible.Name, ansible.ScriptName)), "gpu03"); err != nil || string(none) != "{}\n" {
		t.Errorf("a node that is not in service: %s, %v", none, err)
	}
}

// plain is a document as values that compare.
func plain(t *testing.T, doc map[string]json.RawMessage) (v any) {
	t.Helper()
	b, err := json.Marshal(doc)
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sorted(v)
}

// sorted sorts lists of texts: Ansible's have no order.
func sorted(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = sorted(v[k])
		}
	case []any:
		set := map[string]bool{}
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return v
			}
			set[s] = true
		}
		return set
	}
	return v
}

// TestPeerOpenMPI: mpirun allocates by the hostfile, and binds ranks by the rankfile. It
// listens on ports that the daemons of other tests are about to take, and runs alone.
func TestPeerOpenMPI(t *testing.T) {
	peertest.Need(t, "mpirun")
	l := newListed(t, nil)
	l.accept(t, "gpu01", "gpu02", "gpu06")
	l.inv.Nodes[0].Address = netip.MustParseAddr("127.0.0.1")
	l.apply(t)
	folder := filepath.Join(l.dir, hostfile.Name, "hostfile-list")
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "mpirun", append([]string{"--allow-run-as-root", "--hostfile", filepath.Join(folder, hostfile.FileName)}, args...)...)
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		return fmt.Sprintf("%s%v", out, err)
	}
	// Nothing is launched, which mpirun itself calls an error in the end.
	out := run("--display-map", "--do-not-launch", "-n", "24", "true")
	for _, want := range []string{"Data for node: 10.77.0.11\tNum slots: 8\tMax slots: 0\tNum procs: 8", "Data for node: 10.77.0.21\tNum slots: 8\tMax slots: 0\tNum procs: 8", "Total slots allocated 24"} {
		if !strings.Contains(out, want) {
			t.Errorf("mpirun does not say %q:\n%s", want, out)
		}
	}
	// One GPU on the first core of this machine.
	for _, n := range []string{"gpu02", "gpu06"} {
		l.st.in[n] = false
	}
	one := *l.inv.Nodes[0].Hardware
	one.GPUs = []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 1}}
	l.inv.Nodes[0].Hardware = &one
	l.inspect(t, "gpu01", wire.CPU{Sockets: 1, Cores: 1, Threads: 1}, 1)
	l.apply(t)
	if out := run("--rankfile", filepath.Join(folder, hostfile.RankFileName), "--report-bindings", "true"); !strings.Contains(out, "rank 0 bound to socket 0[core 0[") || !strings.HasSuffix(out, "<nil>") {
		t.Errorf("mpirun does not bind by the rankfile:\n%s\n%s", l.read(t, hostfile.Name, hostfile.RankFileName), out)
	}
}
