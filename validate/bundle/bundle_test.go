// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/bundle"
	"github.com/ironrail/ironrail/validate/chassis"
)

// shell is nodes that have some programs, by the last word of their names.
type shell struct {
	mu    sync.Mutex
	files map[string]string // by path
	has   map[string]string // what a program prints, or writes into the file that it is given
	ran   []string
}

func (s *shell) Run(_ context.Context, node string, c onnode.Command) (onnode.Output, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, node+": "+strings.Join(c.Argv, " "))
	argv := c.Argv
	if argv[0] == "timeout" {
		argv = argv[4:]
	}
	say := func(text string) onnode.Output {
		if c.Stdout != nil {
			fmt.Fprint(c.Stdout, text)
			return onnode.Output{}
		}
		return onnode.Output{Stdout: []byte(text)}
	}
	switch argv[0] {
	case "mktemp":
		return say("/tmp/ironrail-bundle.1\n"), nil
	case "rm":
		for path := range s.files {
			if strings.HasPrefix(path, argv[len(argv)-1]) {
				delete(s.files, path)
			}
		}
		return onnode.Output{}, nil
	case "cat":
		text, ok := s.files[argv[2]]
		if !ok {
			return onnode.Output{Exit: 1}, nil
		}
		return say(text), nil
	}
	text, ok := s.has[argv[0]]
	if !ok {
		return onnode.Output{Exit: 127}, nil
	}
	if text == "hangs" {
		return onnode.Output{Exit: 124}, nil
	}
	for i, a := range argv {
		switch a {
		case "--output-file":
			s.files[argv[i+1]+".gz"] = text
			return onnode.Output{}, nil
		case "--amber_collect":
			s.files[argv[i+1]] = text
			return onnode.Output{}, nil
		}
	}
	return say(text), nil
}

// board is a BMC that collects.
type board struct {
	chassis.BMC
	err error
}

func (b board) Diagnostics(context.Context, int64) ([]byte, error) { return []byte("dump"), b.err }

const module = "Module Info\n-----------\nIdentifier                         : OSFP\nVendor Name                        : NVIDIA\nVendor Part Number                 : MMA4Z00-NS\n" +
	"Vendor Serial Number               : MT2345X00001\nFW Version                         : 46.120.1\nRx Power Current [dBm]             : -9.1,1.1 [-8.2..5]\nTx Power Current [dBm]             : N/A\n"

// collected blames parts of a node and returns what was collected of it, by program.
func collected(t *testing.T, s *shell, err error, left time.Duration, parts ...string) (map[string]bundle.Collected, *onnodetest.Run) {
	t.Helper()
	f := &inventory.Fabric{}
	f.Name = "compute"
	nic := inventory.NIC{Name: "rail", Fabric: f, Ports: []inventory.NICPort{{Rail: 0, PCI: "0000:18:00.0"}, {Rail: 1, PCI: "0000:19:00.0"}}}
	n := &inventory.Node{Name: "n1", Hardware: &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Count: 8}}, NICs: []inventory.NIC{nic}}, BMC: inventory.BMCTarget{Protocol: "redfish"}}
	inv := &inventory.Inventory{Nodes: []*inventory.Node{n}}
	run := onnodetest.NewRun()
	ports, ferr := fabric.Ports("compute").New(subject.OfNode("n1"), []fabric.Port{{Rail: 0, Device: "mlx5_0"}, {Rail: 1, Device: "mlx5_3"}}, "")
	if ferr != nil {
		t.Fatal(ferr)
	}
	if err := run.Learn(t.Context(), ports); err != nil {
		t.Fatal(err)
	}
	w := bundle.Watch(run, plan.Step{ID: "n1/validate.gates", Deadline: plan.Budget{Limit: left}}, inv, s, func(string) (chassis.BMC, error) { return board{err: err}, nil })
	for _, p := range parts {
		if err := w.Blame(t.Context(), stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode("n1"), Part: p}}, Cause: "bad"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string]bundle.Collected{}
	if f, ok := run.Fact(bundle.Fact.Of(subject.OfNode("n1"))); ok {
		list, err := bundle.Fact.Get(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			got[c.Program] = c
		}
	}
	if len(s.files) > 0 {
		t.Errorf("left on the node: %v", s.files)
	}
	return got, run
}

func newShell(has map[string]string) *shell { return &shell{files: map[string]string{}, has: has} }

// TestGPU: of a bad GPU the driver's report and the BMC's data are kept, each once.
func TestGPU(t *testing.T) {
	t.Parallel()
	s := newShell(map[string]string{"nvidia-bug-report.sh": "report"})
	got, _ := collected(t, s, nil, 0, "GPU 3 at 0000:4c:00.0", "GPU 4 at 0000:5c:00.0")
	if len(got) != 2 || got["nvidia-bug-report.sh"].Bytes != 6 || got["the BMC's diagnostic data"].Bytes != 4 || got["nvidia-bug-report.sh"].Ref == "" {
		t.Errorf("%+v", got)
	}
	if n := len(slices.DeleteFunc(slices.Clone(s.ran), func(x string) bool { return !strings.Contains(x, "nvidia-bug-report.sh --safe-mode") })); n != 1 {
		t.Errorf("it ran %d times: %q", n, s.ran)
	}
}

// TestPort: of a bad rail the state of its port and the amber file are kept, and what is
// plugged in is known.
func TestPort(t *testing.T) {
	t.Parallel()
	s := newShell(map[string]string{"mlxlink": module})
	got, _ := collected(t, s, nil, 0, "rail 1, sending")
	m := got["mlxlink of mlx5_3"].Module
	if len(got) != 2 || m == nil || *m != (bundle.Module{Model: "NVIDIA MMA4Z00-NS", Serial: "MT2345X00001", Firmware: "46.120.1", Power: "receives -9.1,1.1 [-8.2..5] dBm"}) || got["mlxlink --amber_collect of mlx5_3"].Bytes == 0 {
		t.Errorf("%+v %+v", got, m)
	}
	s = newShell(map[string]string{"mstlink": module}) // the same from mstflint
	if got, _ := collected(t, s, nil, 0, "rail 0 of compute"); got["mlxlink of mlx5_0"].Module == nil {
		t.Errorf("%+v", got)
	}
}

// TestLacking: what a node does not have, what hangs, what is too large, and a step without
// time are noted, and are no error.
func TestLacking(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has  map[string]string
		err  error
		left time.Duration
		want map[string]string
	}{
		"nothing there": {nil, errkind.New(errkind.Unsupported, "its BMC has no way to"), 0,
			map[string]string{"nvidia-bug-report.sh": "nvidia-bug-report.sh is not on the node", "the BMC's diagnostic data": "no way to"}},
		"hangs":     {map[string]string{"nvidia-bug-report.sh": "hangs"}, nil, 0, map[string]string{"nvidia-bug-report.sh": "did not end within 150 s"}},
		"too large": {map[string]string{"nvidia-bug-report.sh": strings.Repeat("x", 33<<20)}, nil, 0, map[string]string{"nvidia-bug-report.sh": "larger than 32 MiB"}},
		"empty":     {map[string]string{"nvidia-bug-report.sh": ""}, nil, 0, map[string]string{"nvidia-bug-report.sh": "empty file"}},
		"no time":   {map[string]string{"nvidia-bug-report.sh": "report"}, nil, 30 * time.Second, map[string]string{"nvidia-bug-report.sh": "no time left"}},
	} {
		got, run := collected(t, newShell(c.has), c.err, c.left, "GPU 0")
		for program, want := range c.want {
			if x := got[program]; !strings.Contains(x.Why, want) || x.Ref != "" {
				t.Errorf("%s: %s: %+v", name, program, x)
			}
		}
		_ = run
	}
}

// TestNothingBlamed: without a finding nothing runs.
func TestNothingBlamed(t *testing.T) {
	t.Parallel()
	s := newShell(nil)
	if got, _ := collected(t, s, nil, 0); len(got) != 0 || len(s.ran) != 0 {
		t.Errorf("%+v %q", got, s.ran)
	}
}
