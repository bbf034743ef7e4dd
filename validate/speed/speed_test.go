// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/result"
)

// good is a node of two sockets of eight cores with sixteen modules and three disks; by lets
// figures differ.
func good(by func(part string) float64) wire.Speed {
	s := wire.Speed{CPU: wire.CPU{Model: "Intel(R) Xeon(R) Platinum 8480C", Sockets: 2, Cores: 16, Threads: 32, NUMA: 2}}
	for i := range 16 {
		s.DIMMs = append(s.DIMMs, wire.Module{Slot: fmt.Sprintf("DIMM%d", i), Size: 64 << 30, Speed: 4800})
		s.Cores = append(s.Cores, wire.CoreSpeed{CPU: i, Node: i / 8, Rate: 480e6 * by(fmt.Sprint("core", i))})
	}
	for i := range 2 {
		s.NUMA = append(s.NUMA, wire.NUMASpeed{Node: i, Cores: 8, Rate: 170e9 * by(fmt.Sprint("memory", i))})
	}
	for i := range 3 {
		s.Disks = append(s.Disks, wire.DiskSpeed{Disk: wire.Disk{Path: fmt.Sprintf("/dev/nvme%dn1", i), ByPath: fmt.Sprintf("pci-0000:5%d:00.0-nvme-1", i), Type: "nvme", Model: "PM9A3", Serial: "S1", Size: 3840755982336},
			Read: 2 << 30, Seconds: 0.33 / by(fmt.Sprint("disk", i))})
	}
	return s
}

func same(string) float64 { return 1 }

// TestAlone: what is slow by itself is found on one node, and what is well is not.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		spoil  func(*wire.Speed)
		limits Limits
		want   string // the faults, or the beginning of a note
	}{
		{"well", func(*wire.Speed) {}, Limits{}, ""},
		{"a slow core", func(s *wire.Speed) { s.Cores[5].Rate = 300e6 }, Limits{}, "CPU core 5: it computes at 62% of the median of its NUMA node's cores"},
		{"six slow cores", func(s *wire.Speed) {
			for _, i := range []int{0, 1, 2, 8, 9, 10} {
				s.Cores[i].Rate = 300e6
			}
		}, Limits{}, "CPU: 6 cores are slow: core 0: it computes at 62%"},
		{"cores that scatter", func(s *wire.Speed) {
			for i := range 8 {
				s.Cores[i].Rate = 200e6 + 40e6*float64(i)
			}
		}, Limits{}, "note: host.cpu of NUMA node 0: its 8 cores scatter too much to be compared"},
		{"a core that stands still", func(s *wire.Speed) { s.Cores[5].Rate = 0 }, Limits{}, "CPU core 5: it computes at 0%"},
		{"memory at a third", func(s *wire.Speed) { s.NUMA[0].Rate, s.NUMA[1].Rate = 100e9, 100e9 }, Limits{}, "memory: all cores together reach 200GB/s in it, and 246GB/s is 40% of what 16 channels at 4800 MT/s carry"},
		{"memory of CPUs that nobody knows", func(s *wire.Speed) { s.NUMA[0].Rate, s.CPU.Model = 1e9, "X" }, Limits{}, ""},
		{"the site's limit of memory", func(*wire.Speed) {}, Limits{memory: 350e9, text: map[string]string{floor.HostMemory: ">= 350GB/s"}}, "memory: all cores together reach 340GB/s in it, and 350GB/s is the limit of the site, >= 350GB/s"},
		{"the site's limit of cores", func(s *wire.Speed) { s.Cores[3].Rate = 430e6 }, Limits{cpu: 2.2, text: map[string]string{floor.HostCPU: "<= 2.2s"}}, "CPU core 3: it takes 2.33 s for a billion operations, and the limit of the site is <= 2.2s"},
		{"the site's limit of disks", func(s *wire.Speed) { s.Disks[1].Seconds = 2 }, Limits{disk: 3e9, text: map[string]string{floor.DiskRead: ">= 3GB/s"}}, "disk at pci-0000:51:00.0-nvme-1: it is read at 1.07GB/s, and the limit of the site is >= 3GB/s"},
		{"a disk that fails", func(s *wire.Speed) {
			s.Disks[2].Failed, s.Disks[2].Why, s.Disks[2].Seconds = true, "input/output error", 0
		}, Limits{}, "disk at pci-0000:52:00.0-nvme-1: it cannot be read: input/output error"},
		{"a disk that is not read", func(s *wire.Speed) { s.Disks[2].Why, s.Disks[2].Seconds = "no such device", 0 }, Limits{}, "note: disk at pci-0000:52:00.0-nvme-1 was not read: no such device"},
	} {
		s := good(same)
		c.spoil(&s)
		r := NewRecord(s, c.limits)
		var got []string
		for _, f := range r.Faults {
			if got = append(got, f.Cause); f.Action == "" || len(f.Evidence) == 0 {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		for _, n := range r.Notes {
			got = append(got, "note: "+n)
		}
		if text := strings.Join(got, "\n"); c.want == "" && text != "" || !strings.HasPrefix(text, c.want) || len(got) > 1 {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		bad := false
		for _, one := range (Report{Record: r}).Report("n1").Results {
			bad = bad || one.Verdict == result.Fail
		}
		if bad != (len(r.Faults) > 0) {
			t.Errorf("%s: the report differs", c.name)
		}
	}
}

// fleet is n nodes that differ by 2 %.
func fleet(n int, spoil func([]wire.Speed)) (nodes []Node) {
	r := rand.New(rand.NewPCG(3, 5))
	var all []wire.Speed
	for range n {
		all = append(all, good(func(string) float64 { return 0.98 + 0.04*r.Float64() }))
	}
	spoil(all)
	for i, s := range all {
		nodes = append(nodes, Node{fmt.Sprintf("n%d", i), NewRecord(s, Limits{})})
	}
	return nodes
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		nodes int
		spoil func([]wire.Speed)
		want  string
		notes int
	}{
		{"alike", 6, func([]wire.Speed) {}, "", 0},
		{"a channel of one socket", 6, func(l []wire.Speed) { l[2].NUMA[1].Rate = 170e9 * 7 / 8 }, "n2 memory of NUMA node 1: all cores together reach 149GB/s in it, 8", 0},
		{"a channel of both", 6, func(l []wire.Speed) { l[2].NUMA[0].Rate, l[2].NUMA[1].Rate = 148e9, 148e9 }, "n2 memory: all cores together reach 148GB/s in it", 0},
		{"a capped CPU, and what it does to the memory", 6, func(l []wire.Speed) {
			for i := range l[4].Cores {
				l[4].Cores[i].Rate = 360e6
			}
			l[4].NUMA[0].Rate, l[4].NUMA[1].Rate = 130e9, 130e9
		}, "n4 CPU: its cores take 2.78 s for a billion operations while all of them work, those of other nodes 2.", 0},
		{"one capped socket", 6, func(l []wire.Speed) {
			for i := range 8 {
				l[4].Cores[i].Rate = 360e6
			}
		}, "n4 CPU of NUMA node 0: its cores take 2.78 s", 0},
		{"a slow disk", 2, func(l []wire.Speed) { l[1].Disks[2].Seconds = 1 }, "n1 disk at pci-0000:52:00.0-nvme-1: it is read at 2.15GB/s, 33% of the median of disks of its model", 4},
		{"a module that differs is not compared", 6, func(l []wire.Speed) { l[3].DIMMs[4].Speed, l[3].NUMA[0].Rate = 4400, 150e9 }, "", 2},
		{"memory that is slow by itself is found once", 6, func(l []wire.Speed) { l[3].NUMA[0].Rate, l[3].NUMA[1].Rate = 90e9, 90e9 }, "", 0},
		{"machines that share a computer", 6, func(l []wire.Speed) {
			for i := range l {
				for k := range l[i].Cores {
					l[i].Cores[k].Rate = 200e6 + 50e6*float64(i)
				}
			}
		}, "", 2},
		{"too few", 3, func(l []wire.Speed) { l[0].NUMA[0].Rate = 100e9 }, "", 4},
	} {
		rows, found, notes := CompareNodes(fleet(c.nodes, c.spoil))
		var got []string
		for _, o := range found {
			if got = append(got, o.Node+" "+o.Cause); o.Action == "" || len(o.Evidence) == 0 || !strings.HasPrefix(o.Cause, o.Part+": ") {
				t.Errorf("%s: %+v", c.name, o)
			}
		}
		if text := strings.Join(got, "\n"); c.want == "" && text != "" || !strings.HasPrefix(text, c.want) || len(got) > 1 || len(notes) != c.notes {
			t.Errorf("%s: got %q, %q; want %q", c.name, got, notes, c.want)
		}
		fails := 0
		for _, one := range (RoleReport{Rows: rows}).Report().Results {
			if one.Verdict == result.Fail {
				fails++
			}
		}
		if (fails > 0) != (c.want != "" || strings.Contains(c.name, "by itself")) {
			t.Errorf("%s: %d results fail", c.name, fails)
		}
	}
}

// TestGroups: where half of a role is slow, no node is blamed, and the report says which two groups there
// are; what is slow by itself, and half of the disks of each node, are none.
func TestGroups(t *testing.T) {
	t.Parallel()
	slow := func(by float64, do func(l *wire.Speed, by float64)) func([]wire.Speed) {
		return func(l []wire.Speed) {
			for i := range l {
				if i%2 == 0 {
					do(&l[i], by)
				}
			}
		}
	}
	memory := func(s *wire.Speed, by float64) { s.NUMA[0].Rate, s.NUMA[1].Rate = by*s.NUMA[0].Rate, by*s.NUMA[1].Rate }
	cpu := func(s *wire.Speed, by float64) {
		for i := range s.Cores {
			s.Cores[i].Rate *= by
		}
	}
	disks := func(s *wire.Speed, by float64) {
		for i := range s.Disks {
			s.Disks[i].Seconds /= by
		}
	}
	for _, c := range []struct {
		name  string
		nodes int
		spoil func([]wire.Speed)
		want  []string
		more  int // rows that are in the same groups
	}{
		{"alike", 8, func([]wire.Speed) {}, nil, 0},
		{"memory of two of four", 4, slow(0.75, memory), []string{"memory of role worker is in two groups: 2 nodes (n0, n2) reach in it 12"}, 1},
		{"memory of four of eight", 8, slow(0.83, memory), []string{"memory of role worker is in two groups: 4 nodes (n0, n2, n4, n6) reach in it 1"}, 1},
		{"CPUs that slow the memory down", 8, slow(0.75, func(s *wire.Speed, by float64) { memory(s, by); cpu(s, by) }), []string{"CPU of role worker is in two groups: 4 nodes (n0, n2, n4, n6) take for a billion operations "}, 3},
		{"disks", 8, slow(0.6, disks), []string{"disks PM9A3 of role worker is in two groups: 4 nodes (n0, n2, n4, n6) are read, each at its slowest, at "}, 0},
		{"disks and CPUs", 16, slow(0.6, func(s *wire.Speed, by float64) { disks(s, by); cpu(s, by) }), []string{"CPU of role worker", "disks PM9A3 of role worker"}, 1},
		{"memory that is slow by itself", 8, slow(0.4, memory), nil, 0},
		{"half of the disks of each", 8, func(l []wire.Speed) {
			for i := range l {
				l[i].Disks = l[i].Disks[:2]
				l[i].Disks[1].Seconds *= 2
			}
		}, nil, 0},
	} {
		nodes := fleet(c.nodes, c.spoil)
		rows, found, _ := CompareNodes(nodes)
		r := RoleReport{Role: "worker", Rows: rows}
		var got []string
		more := 0
		for _, s := range r.splits() {
			got, more = append(got, s.Text(s.of)), more+len(s.more)
		}
		if len(found) != 0 || len(got) != len(c.want) || more != c.more {
			t.Errorf("%s: %q, %d more, and %+v", c.name, got, more, found)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%s: %q, want %q", c.name, got[i], want)
			}
		}
		fails := 0
		for _, one := range r.Report().Results {
			if one.Verdict == result.Fail {
				fails++
			}
		}
		if fails != len(c.want)+c.more && !strings.Contains(c.name, "by itself") {
			t.Errorf("%s: %d results fail", c.name, fails)
		}
	}
}

// TestNoGroups: of healthy roles whose hosts scatter by 4 %, be it each part's own, that of racks or of
// places, none is in two groups in 1,000 draws.
func TestNoGroups(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 11))
		within := func(share float64) float64 { return 1 + share*(2*r.Float64()-1) }
		rack, place := []float64{within(0.02), within(0.02)}, map[string]float64{}
		var nodes []Node
		n := []int{4, 6, 8, 12, 16, 32}[seed%6]
		for i := range n {
			nodes = append(nodes, Node{fmt.Sprintf("n%d", i), NewRecord(good(func(part string) float64 {
				switch seed % 4 {
				case 0:
					return within(0.04)
				case 1:
					return rack[2*i/n] * within(0.02)
				case 2:
					if place[part] == 0 {
						place[part] = within(0.02)
					}
					return place[part] * within(0.02)
				}
				return 1 + 0.03*r.NormFloat64()
			}), Limits{})})
		}
		rows, _, _ := CompareNodes(nodes)
		if list := (RoleReport{Role: "worker", Rows: rows}).splits(); len(list) > 0 {
			t.Errorf("seed %d, %d nodes: %s", seed, n, list[0].Text(list[0].of))
		}
	}
}

// TestNormalScatter: figures of healthy hosts that scatter by some percent lose nobody, also far
// from the median, and a host that is a quarter slower is found.
func TestNormalScatter(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 9))
	for _, sigma := range []float64{0.005, 0.01, 0.02, 0.03} {
		var nodes []Node
		for i := range 300 {
			s := good(func(string) float64 { return 1 + sigma*r.NormFloat64() })
			if i == 0 {
				s.NUMA[0].Rate *= 0.75
			}
			nodes = append(nodes, Node{fmt.Sprintf("n%d", i), NewRecord(s, Limits{})})
		}
		if _, found, _ := CompareNodes(nodes); len(found) != 1 || found[0].Node != "n0" || found[0].Part != "memory of NUMA node 0" {
			t.Errorf("%g: %d are found: %+v", sigma, len(found), found)
		}
	}
}

// TestScatter: what healthy hosts differ by loses nobody, be it each part's own or that of a
// rack or a socket.
func TestScatter(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(17, 4))
	within := func(share float64) float64 { return 1 + share*(2*r.Float64()-1) }
	for _, by := range []string{"part", "rack", "place"} {
		rack, place := map[int]float64{}, map[string]float64{}
		var nodes []Node
		for i := range 1000 {
			if i%8 == 0 {
				rack[i/8] = within(0.02)
			}
			nodes = append(nodes, Node{fmt.Sprintf("n%d", i), NewRecord(good(func(part string) float64 {
				switch by {
				case "rack":
					return rack[i/8] * within(0.02)
				case "place":
					if place[part] == 0 {
						place[part] = within(0.02)
					}
					return place[part] * within(0.02)
				}
				return within(0.04)
			}), Limits{})})
		}
		if _, found, _ := CompareNodes(nodes); len(found) != 0 {
			t.Errorf("4%% of scatter by %s: %d are blamed, first %+v", by, len(found), found[0])
		}
	}
}
