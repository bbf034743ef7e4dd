// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/slurm"
)

// cabled is a site of 2 x 4 nodes with eight H100 each: a rack is a scalable unit
// with a leaf for each of two rails, two spines above them, and an NVLink domain.
func cabled(h *inventory.Handover) *inventory.Inventory {
	inv := &inventory.Inventory{Site: inventory.Site{Name: "lab"}, Handovers: []*inventory.Handover{h}}
	f := &inventory.Fabric{Block: inventory.Block{Kind: "infiniband", Name: "compute"}}
	inv.Fabrics = []*inventory.Fabric{f}
	hw := &inventory.Hardware{Name: "hgx", GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 8}}, NICs: []inventory.NIC{{Name: "rail", Fabric: f}}}
	spines := []*inventory.Switch{{Name: "net/spine-1", Fabric: f}, {Name: "net/spine-2", Fabric: f}}
	for su := 1; su <= 2; su++ {
		rack := &inventory.Rack{Name: fmt.Sprintf("r%02d", su)}
		var leaves []*inventory.Switch
		for rail := range 2 {
			leaf := &inventory.Switch{Name: fmt.Sprintf("net/leaf-%d-%d", su, rail), Fabric: f, ScalableUnit: su}
			leaves = append(leaves, leaf)
			for _, s := range spines {
				inv.Cables = append(inv.Cables, &inventory.Cable{Fabric: f, From: inventory.CableEnd{Switch: leaf}, To: inventory.CableEnd{Switch: s}})
			}
		}
		for i := range 4 {
			n := &inventory.Node{Name: fmt.Sprintf("gpu%02d", 4*(su-1)+i+1), Rack: rack, ScalableUnit: su, Domain: fmt.Sprintf("nvl%d", su), Handover: h, Hardware: hw,
				Address: netip.AddrFrom4([4]byte{10, 77, 0, byte(10*su + i)}), Decl: line(80)}
			inv.Nodes = append(inv.Nodes, n)
			for _, leaf := range leaves {
				inv.Cables = append(inv.Cables, &inventory.Cable{Fabric: f, From: inventory.CableEnd{Node: n, NIC: &hw.NICs[0]}, To: inventory.CableEnd{Switch: leaf}})
			}
		}
	}
	return inv
}

// release is a slurmctld of a version, which knows no node.
func release(version string) slurm.Programs {
	return func(_ context.Context, _ string, argv ...string) ([]byte, error) {
		switch {
		case version == "":
			return nil, errkind.New(errkind.Unreachable, "slurmctld does not answer")
		case len(argv) == 3 && argv[2] == "config":
			return []byte("GresTypes               = gpu\nSLURM_VERSION           = " + version + "\n"), nil
		}
		return nil, nil
	}
}

// written hands the nodes of the cabled site to slurmctld of a version and
// returns the files.
func written(t *testing.T, version string, attributes map[string]cty.Value, in ...string) (map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	attributes["controller"] = cty.StringVal("10.77.0.3")
	st, run := &statuses{in: map[string]bool{}, why: map[string]string{}}, onnodetest.NewRun()
	for _, n := range in {
		st.in[n] = true
		accept(t, run, n, run.Now)
	}
	s := handover.New(cabled(block("slurm", attributes)), map[string]handover.Kind{"slurm": slurm.New(dir, release(version))}, st)
	err := s.Apply(t.Context(), run, steps(t, s)["site/handover.lab"])
	files := map[string]string{}
	names, _ := filepath.Glob(filepath.Join(dir, "lab", "*"))
	for _, name := range names {
		b, rerr := os.ReadFile(name)
		if rerr != nil {
			t.Fatal(rerr)
		}
		files[filepath.Base(name)] = string(b)
	}
	return files, err
}

// TestSlurmVersions: the files have the form that the controller's own version
// reads. One node was never inspected and has the shape of its equals.
func TestSlurmVersions(t *testing.T) {
	t.Parallel()
	blocks := func() map[string]cty.Value {
		return map[string]cty.Value{"topology": cty.StringVal("block"), "block_size": cty.NumberIntVal(4)}
	}
	for _, c := range []struct {
		name, version string
		attributes    map[string]cty.Value
		want          []string // names of the golden files
	}{
		{"tree", "22.05.8", map[string]cty.Value{}, []string{"nodes.conf", "gres.conf", "topology.conf"}},
		{"tree-yaml", "25.05.1", map[string]cty.Value{"gres": cty.StringVal("autodetect")}, []string{"nodes.conf", "gres.conf", "topology.yaml"}},
		{"block", "23.11.4", blocks(), []string{"nodes.conf", "gres.conf", "topology.conf"}},
		{"block-yaml", "25.11.0", blocks(), []string{"nodes.conf", "gres.conf", "topology.yaml"}},
		{"flat", "24.05", map[string]cty.Value{"topology": cty.StringVal("flat"), "gres": cty.StringVal("none")}, []string{"nodes.conf"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files, err := written(t, c.version, c.attributes, "gpu01", "gpu02", "gpu03", "gpu05", "gpu06", "gpu07", "gpu08")
			if err != nil || len(files) != len(c.want) {
				t.Fatalf("wrote %v: %v", files, err)
			}
			for _, name := range c.want {
				golden(t, c.name+"-"+name, []byte(files[name]))
			}
		})
	}
}

// TestSlurmRefusesAVersion: what slurmctld does not have is refused with the
// version that does, and no file is written; the attribute stands for a slurmctld
// that does not answer.
func TestSlurmRefusesAVersion(t *testing.T) {
	t.Parallel()
	attributes := func(version string) map[string]cty.Value {
		a := map[string]cty.Value{"topology": cty.StringVal("block")}
		if version != "" {
			a["version"] = cty.StringVal(version)
		}
		return a
	}
	for _, c := range []struct{ name, asked, answer, want string }{
		{"old", "22.05.8", "", "slurmctld at 10.77.0.3 is version 22.05, and topology \"block\" is there since 23.11"},
		{"old, whatever the site says", "22.05.8", "24.05", "is version 22.05"},
		{"nobody knows", "", "", "which version of Slurm runs at 10.77.0.3 is not known"},
		{"said", "", "24.05", ""},
	} {
		files, err := written(t, c.asked, attributes(c.answer), "gpu01", "gpu05")
		if c.want == "" && (err != nil || !strings.Contains(files["topology.conf"], "BlockSizes=4\n")) {
			t.Errorf("%s: %v: %q", c.name, err, files)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || errkind.Action(err) == "" || len(files) > 0) {
			t.Errorf("%s: %v, files %v", c.name, err, files)
		}
	}
}

// TestSlurmKeepsAGoodFile: what slurmctld would refuse does not replace what it
// has read.
func TestSlurmKeepsAGoodFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := block("slurm", map[string]cty.Value{"controller": cty.StringVal("x"), "topology": cty.StringVal("block"), "block_size": cty.NumberIntVal(4)})
	inv, run := cabled(h), onnodetest.NewRun()
	st := &statuses{in: map[string]bool{"gpu01": true}}
	accept(t, run, "gpu01", run.Now)
	s := handover.New(inv, map[string]handover.Kind{"slurm": slurm.New(dir, release("24.05"))}, st)
	step := steps(t, s)["site/handover.lab"]
	if err := s.Apply(t.Context(), run, step); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "lab", "topology.conf")
	good, _ := os.ReadFile(file)
	inv.Nodes[7].Handover = nil // the second block has three nodes now
	if err := s.Apply(t.Context(), run, step); err == nil || !strings.Contains(err.Error(), `NVLink domain "nvl2" has 3 nodes that Slurm can be told of, and block_size is 4`) {
		t.Errorf("got %v", err)
	}
	if now, _ := os.ReadFile(file); string(now) != string(good) || !strings.Contains(string(good), "BlockName=nvl2 Nodes=gpu[05-08]\n") {
		t.Errorf("the file was\n%s\nand is\n%s", good, now)
	}
}

// TestPeerRealSlurmd gives the files to a real slurmctld and to the real slurmd of a
// node, which registers with the CPUs, memory and GPUs that they say: drained
// while it is not accepted, idle afterwards.
func TestPeerRealSlurmd(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "slurmctld", "slurmd", "scontrol")
	if os.Geteuid() != 0 {
		t.Skip("needs root: slurmd is root")
	}
	dir := t.TempDir()
	inv := cabled(block("slurm", map[string]cty.Value{"controller": cty.StringVal("x"), "partition": cty.StringVal("gpu")}))
	inv.Nodes = inv.Nodes[:1]
	inv.Nodes[0].Address = netip.MustParseAddr("127.0.0.1")
	st, run := &statuses{in: map[string]bool{}}, onnodetest.NewRun()
	accept(t, run, "gpu01", run.Now)
	learnShape(t, run, "gpu01")
	var conf string
	ask := func(ctx context.Context, _ string, argv ...string) ([]byte, error) {
		if conf == "" {
			return nil, errkind.New(errkind.Unreachable, "slurmctld is not there yet")
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		return cmd.Output()
	}
	s := handover.New(inv, map[string]handover.Kind{"slurm": slurm.New(dir, ask)}, st)
	step := steps(t, s)["site/handover.lab"]
	apply := func() {
		t.Helper()
		if err := s.Apply(t.Context(), run, step); err != nil {
			t.Fatal(err)
		}
		devices(t, filepath.Join(dir, "lab"))
	}
	apply()
	conf = startSlurm(t, filepath.Join(dir, "lab"))
	startSlurmd(t, conf, "gpu01")
	await := func(words ...string) {
		t.Helper()
		var out []byte
		for range 600 {
			out, _ = ask(t.Context(), "", "scontrol", "-o", "show", "node", "gpu01")
			all := true
			for _, w := range words {
				all = all && strings.Contains(string(out), w)
			}
			if all {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatalf("slurmctld does not say %q: %s", words, out)
	}
	await("State=IDLE+DRAIN ", "Reason=ironrail: not accepted", "Gres=gpu:h100:8")
	st.in["gpu01"] = true
	apply()
	near := "Gres=gpu:h100:8"
	if b, _ := os.ReadFile(filepath.Join(dir, "lab", "gres.conf")); strings.Contains(string(b), "Cores=") {
		near = "Gres=gpu:h100:8(S:0" // slurmd has understood Cores=; it counts the sockets of this machine
	}
	await("State=IDLE ", near)
	if out, err := ask(t.Context(), "", "scontrol", "show", "topology"); err != nil || !strings.Contains(string(out), "SwitchName=su1 Level=0 LinkSpeed=1 Nodes=gpu01") {
		t.Errorf("topology: %s (%v)", out, err)
	}
}

// devices makes files of GPUs, since this machine has none, and tells gres.conf of
// them.
func devices(t *testing.T, dir string) {
	t.Helper()
	for i := range 8 {
		if err := os.WriteFile(filepath.Join(dir, "nvidia"+strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "gres.conf")
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), "File=/dev/nvidia[0-") {
		t.Fatalf("gres.conf: %v\n%s", err, b)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), "/dev/nvidia", dir+"/nvidia")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startSlurmd starts slurmd as a node until the test ends.
func startSlurmd(t *testing.T, conf, node string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, "slurmd", "-D", "-N", node, "-f", conf)
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
}

var shapeWord = regexp.MustCompile(`(CPUs|Boards|SocketsPerBoard|CoresPerSocket|ThreadsPerCore|RealMemory)=([0-9]+)`)

// learnShape gives a node the CPUs and the memory that slurmd finds here.
func learnShape(t *testing.T, run *onnodetest.Run, node string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "slurmd", "-C").Output()
	if err != nil {
		t.Fatal(err)
	}
	v := map[string]int{}
	for _, m := range shapeWord.FindAllStringSubmatch(string(out), -1) {
		v[m[1]], _ = strconv.Atoi(m[2])
	}
	cores := v["SocketsPerBoard"] * v["CoresPerSocket"]
	if v["SocketsPerBoard"] == 1 && cores%2 == 0 { // two sockets, for GPUs that are near to one of them
		v["SocketsPerBoard"] = 2
	}
	hw := wire.Hardware{CPU: wire.CPU{Sockets: v["SocketsPerBoard"], Cores: cores, Threads: cores * v["ThreadsPerCore"]},
		Memory: wire.Memory{Usable: int64(v["RealMemory"]) << 20}}
	for i := range 8 {
		socket := i / 4
		hw.PCI = append(hw.PCI, wire.PCI{Address: fmt.Sprintf("0000:%x8:00.0", i+1), Vendor: "10de", Class: "030200", Socket: &socket})
	}
	f, err := fact.Name[wire.Hardware]("node.hardware").New(subject.OfNode(node), hw, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Learn(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}
