// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

// wanted is what NVIDIA and AMD recommend.
var wanted = wire.RoCELossless{Priority: 3, DSCP: 26, CNP: 48, CNPPriority: 6, TrafficClass: 106, PFC: true}

// toolbox answers as the programs do, and keeps what they set.
type toolbox struct {
	installed []string
	trust     string
	priority  map[int]int
	pfc       [8]bool
	calls     []string
}

func (b *toolbox) run(_ context.Context, argv ...string) ([]byte, error) {
	if !slices.Contains(b.installed, argv[0]) {
		return nil, fmt.Errorf("%s: %w", argv[0], fs.ErrNotExist)
	}
	call := strings.Join(argv, " ")
	b.calls = append(b.calls, call)
	var d, p int
	switch {
	case call == "mlnx_qos -i ens4":
		return []byte(b.show()), nil
	case call == "mlnx_qos -i ens4 --trust dscp":
		b.trust = "dscp"
	case strings.HasPrefix(call, "mlnx_qos -i ens4 --pfc "):
		for i, on := range strings.Split(argv[4], ",") {
			b.pfc[i] = on == "1"
		}
	case strings.HasPrefix(call, "mlnx_qos -i ens4 --dscp2prio "):
		if _, err := fmt.Sscanf(argv[4], "set,%d,%d", &d, &p); err != nil {
			return nil, err
		}
		b.priority[d] = p
	case strings.HasPrefix(call, "dcb app replace dev ens4 dscp-prio "):
		for _, e := range argv[6:] {
			if _, err := fmt.Sscanf(e, "%d:%d", &d, &p); err != nil {
				return nil, err
			}
			b.priority[d], b.trust = p, "dscp"
		}
	case strings.HasPrefix(call, "dcb pfc set dev ens4 prio-pfc all:off"):
		b.pfc = [8]bool{}
		for _, e := range argv[7:] {
			if _, err := fmt.Sscanf(e, "%d:on", &p); err != nil {
				return nil, err
			}
			b.pfc[p] = true
		}
	case call == "dcb -N -j app show dev ens4 dscp-prio":
		if b.trust == "pcp" {
			return []byte("{}"), nil
		}
		return fmt.Appendf(nil, `{"dscp_prio":[[26,%d],[48,%d]]}`, b.priority[26], b.priority[48]), nil
	case call == "dcb -j pfc show dev ens4 prio-pfc":
		return fmt.Appendf(nil, `{"prio_pfc":[%t,%t,%t,%t,%t,%t,%t,%t]}`, b.pfc[0], b.pfc[1], b.pfc[2], b.pfc[3], b.pfc[4], b.pfc[5], b.pfc[6], b.pfc[7]), nil
	default:
		return nil, errors.New("usage: " + call)
	}
	return nil, nil
}

// show is what mlnx_qos prints.
func (b *toolbox) show() string {
	text := "DCBX mode: OS controlled\nPriority trust state: " + b.trust + "\ndscp2prio mapping:\n"
	for p := range 8 {
		text += fmt.Sprintf("\tprio:%d dscp:", p)
		for d := 63; d >= 0; d-- {
			if b.priority[d] == p {
				text += fmt.Sprintf("%02d,", d)
			}
		}
		text += "\n"
	}
	text += "PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled   "
	for _, on := range b.pfc {
		text += map[bool]string{true: "  1 ", false: "  0 "}[on]
	}
	return text + "\n"
}

// tools returns the tools with a NIC of a driver.
func tools(t *testing.T, driver string, installed ...string) (Tools, *toolbox) {
	t.Helper()
	b := &toolbox{installed: installed, trust: "pcp", priority: map[int]int{}}
	for d := range 64 {
		b.priority[d] = d >> 3
	}
	root := t.TempDir()
	for _, dir := range []string{"sys/class/net/ens4/device", "sys/kernel/config/rdma_cm/mlx5_0/ports/1", "sys/class/infiniband/mlx5_0/tc/1"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../../bus/pci/drivers/"+driver, filepath.Join(root, "sys/class/net/ens4/device/driver")); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos": "0\n", "sys/class/infiniband/mlx5_0/tc/1/traffic_class": "Global tclass=0\n"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Tools{Root: root, Run: b.run}, b
}

func TestTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, driver string
		installed    []string
		by           string
	}{
		{"NVIDIA with its tools", "mlx5_core", []string{"mlnx_qos", "dcb"}, "mlnx_qos"},
		{"NVIDIA without", "mlx5_core", []string{"dcb"}, "dcb"},
		{"Broadcom", "bnxt_en", []string{"mlnx_qos", "dcb"}, "dcb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nic, b := tools(t, c.driver, c.installed...)
			before, err := nic.Sorting("ens4", "mlx5_0")
			if err != nil || before.TrafficClass != 0 || len(sortingProblems(wanted, before)) == 0 {
				t.Fatalf("before: %+v, %v", before, err)
			}
			b.calls = nil
			if err := nic.SetSorting("ens4", "mlx5_0", wanted); err != nil {
				t.Fatal(err)
			}
			for _, call := range b.calls {
				if !strings.HasPrefix(call, c.by+" ") {
					t.Errorf("called %s", call)
				}
			}
			after, err := nic.Sorting("ens4", "mlx5_0")
			if err != nil || len(sortingProblems(wanted, after)) != 0 {
				t.Errorf("after: %+v, %v, %q", after, err, sortingProblems(wanted, after))
			}
			all, err := os.ReadFile(filepath.Join(nic.Root, "sys/class/infiniband/mlx5_0/tc/1/traffic_class"))
			if err != nil || string(all) != "106" {
				t.Errorf("traffic class of all queue pairs: %q, %v", all, err)
			}
			off := wanted
			off.PFC = false
			if err := nic.SetSorting("ens4", "mlx5_0", off); err != nil || b.pfc != [8]bool{} {
				t.Errorf("PFC off: %v, %v", b.pfc, err)
			}
		})
	}
}

func TestToolsThatAreNotThere(t *testing.T) {
	t.Parallel()
	nic, _ := tools(t, "mlx5_core")
	if _, err := nic.Sorting("ens4", "mlx5_0"); err == nil || !strings.Contains(err.Error(), "neither mlnx_qos nor dcb") {
		t.Errorf("got %v", err)
	}
	if err := nic.SetSorting("ens4", "mlx5_0", wanted); err == nil {
		t.Error("nothing was set, and no error said so")
	}
}

func TestSortingProblems(t *testing.T) {
	t.Parallel()
	good := wire.RoCESorting{Trust: "dscp", Priorities: map[int]int{26: 3, 48: 6}, Paused: []int{3}, TrafficClass: 106}
	for _, c := range []struct {
		name   string
		change func(*wire.RoCESorting)
		want   string
	}{
		{"good", func(*wire.RoCESorting) {}, ""},
		{"trust", func(s *wire.RoCESorting) { s.Trust = "pcp" }, `trusts "pcp"`},
		{"DSCP", func(s *wire.RoCESorting) { s.Priorities = map[int]int{26: 1, 48: 6} }, "DSCP 26 has priority 1, not 3"},
		{"CNP", func(s *wire.RoCESorting) { s.Priorities = map[int]int{26: 3, 48: 0} }, "DSCP 48 has priority 0, not 6"},
		{"not paused", func(s *wire.RoCESorting) { s.Paused = nil }, "PFC is on for priorities [], not [3]"},
		{"more is paused", func(s *wire.RoCESorting) { s.Paused = []int{3, 4} }, "priorities [3 4], not [3]"},
		{"traffic class", func(s *wire.RoCESorting) { s.TrafficClass = 0 }, "traffic class 0, not 106"},
		{"a map of class selectors that is not shown", func(s *wire.RoCESorting) { s.Priorities = nil }, ""},
	} {
		s := good
		c.change(&s)
		if got := strings.Join(sortingProblems(wanted, s), "; "); got != "" != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// Sorting and SetSorting are the fake kernel's NIC.
func (f *fake) Sorting(netdev, _ string) (wire.RoCESorting, error) { return f.sorting[netdev], nil }

func (f *fake) SetSorting(netdev, _ string, want wire.RoCELossless) error {
	f.writes++
	s := wire.RoCESorting{Trust: "dscp", Paused: want.Paused(), TrafficClass: want.TrafficClass}
	s.Set(want.DSCP, want.Priority)
	s.Set(want.CNP, want.CNPPriority)
	f.sorting[netdev] = s
	return nil
}

// TestLossless: a rail is made lossless, is left alone when it is so, and comes
// back after a boot.
func TestLossless(t *testing.T) {
	t.Parallel()
	f, node := newFake(t)
	f.devices["ens4"] = "mlx5_0"
	f.gid("mlx5_0", "3", typeV2, "ens4", "0000:0000:0000:0000:0000:ffff:0a4d:100b")
	p := rail("10.77.16.11/24")
	p.Ports[0].SoftwareRDMA, p.Lossless = "", &wanted
	r := node.Apply(t.Context(), p)
	if !r.Conforms || !slices.Contains(r.Changed, "rail 0: DSCP 26 has priority 3, PFC true") || r.Ports[0].Sorting == nil || r.Ports[0].GIDIndex != 3 {
		t.Fatalf("apply: %+v", r)
	}
	writes := f.writes
	if r := node.Apply(t.Context(), p); !r.Conforms || len(r.Changed) != 0 || f.writes != writes {
		t.Errorf("again: %+v", r)
	}
	f.sorting = map[string]wire.RoCESorting{} // a boot
	if r := node.Check(p); r.Conforms || !strings.Contains(strings.Join(r.Ports[0].Problems, "; "), "PFC is on for priorities [], not [3]") {
		t.Errorf("after a boot: %+v", r)
	}
	if r := node.Up(t.Context()); !r.Conforms {
		t.Errorf("up: %+v", r)
	}
	node.QoS = nil
	if r := node.Check(p); r.Conforms {
		t.Error("an agent that cannot look finds it conforming")
	}
	p.Lossless = &wire.RoCELossless{Priority: 8}
	if r := node.Check(p); r.Error == nil {
		t.Error("priority 8 is taken")
	}
}
