// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// machine answers with figures that differ from time to time.
type machine struct {
	cpus    []int
	bytes   int64
	triads  int
	times   int
	disks   []string
	refuses error
}

func (m *machine) Triad(_ context.Context, cpus []int, bytes int64, _ time.Duration) ([]float64, error) {
	m.cpus, m.bytes = cpus, bytes
	m.triads++
	var list []float64
	for range cpus {
		list = append(list, float64([]int{0, 5, 9, 7}[m.triads]))
	}
	return list, m.refuses
}

func (m *machine) Rounds(_ context.Context, cpus []int, _ time.Duration) ([]float64, error) {
	m.times++
	var list []float64
	for i := range cpus {
		list = append(list, float64(100*i+m.times))
	}
	return list, m.refuses
}

func (m *machine) Read(_ context.Context, path string, _, most int64, _ time.Duration) (int64, time.Duration, bool, error) {
	m.disks = append(m.disks, path)
	if path == "/dev/nvme1n1" {
		return 0, 0, true, errors.New("read /dev/nvme1n1: input/output error")
	}
	return most, 2 * time.Second, false, nil
}

// node is a node of two sockets with two cores of two threads each, the last thread of which
// is offline, and three disks.
func node(memory string) sysfs.FS {
	files := fstest.MapFS{
		"proc/meminfo":                          {Data: []byte(memory)},
		"sys/devices/system/node/node0/cpulist": {Data: []byte("0-1,4-5\n")},
		"sys/devices/system/node/node1/cpulist": {Data: []byte("2-3,6\n")},
	}
	for i := range 7 {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", i)
		files[dir+"physical_package_id"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%d\n", i%4/2)}
		files[dir+"core_id"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%d\n", i%2)}
	}
	files["sys/devices/system/cpu/cpu7/online"] = &fstest.MapFile{Data: []byte("0\n")}
	for _, name := range []string{"nvme0n1", "nvme1n1"} {
		files["sys/block/"+name+"/size"] = &fstest.MapFile{Data: []byte("7501476528\n")}
	}
	return sysfs.Of(files)
}

func free(context.Context) (func(), error) { return func() {}, nil }

func TestMeasure(t *testing.T) {
	t.Parallel()
	m := &machine{}
	r := Meter{FS: node("MemTotal: 99 kB\nMemAvailable: 1048576000 kB\n"), Machine: m, Lock: free}.Measure(t.Context(), wire.SpeedParams{Memory: 3, CPU: 3, Disk: 1, Bytes: 1 << 30})
	if r.Error != nil || len(r.Gaps) != 0 {
		t.Fatalf("%+v", r)
	}
	if !slices.Equal(m.cpus, []int{0, 1, 2, 3}) || m.bytes != arrayBytes {
		t.Errorf("CPUs %v, arrays of %d bytes", m.cpus, m.bytes)
	}
	if want := []wire.NUMASpeed{{Node: 0, Cores: 2, Rate: 18}, {Node: 1, Cores: 2, Rate: 18}}; !slices.Equal(r.NUMA, want) {
		t.Errorf("memory: the best of three times: %+v", r.NUMA)
	}
	if want := []wire.CoreSpeed{{CPU: 0, Node: 0, Rate: 2}, {CPU: 1, Node: 0, Rate: 102}, {CPU: 2, Node: 1, Rate: 202}, {CPU: 3, Node: 1, Rate: 302}}; !slices.Equal(r.Cores, want) {
		t.Errorf("cores: the median of three times: %+v", r.Cores)
	}
	if len(r.Disks) != 2 || r.Disks[0].Rate() != 1<<29 || r.Disks[0].Failed || !r.Disks[1].Failed || r.Disks[1].Rate() != 0 {
		t.Errorf("disks %+v", r.Disks)
	}
}

// TestGaps: what could not be measured is said, and is no figure.
func TestGaps(t *testing.T) {
	t.Parallel()
	p := wire.SpeedParams{Memory: 1, CPU: 1}
	for _, c := range []struct {
		name string
		fs   sysfs.FS
		m    machine
		want string
	}{
		{"little memory", node("MemAvailable: 8192 kB\n"), machine{}, "arrays of less than 4 MiB"},
		{"no CPUs", sysfs.Of(fstest.MapFS{}), machine{}, "the kernel tells of no CPU"},
		{"refused", node("MemTotal: 104857600 kB\n"), machine{refuses: errors.New("CPU 1: invalid argument")}, "the CPUs were not measured: CPU 1"},
	} {
		r := Meter{FS: c.fs, Machine: &c.m, Lock: free}.Measure(t.Context(), p)
		if !strings.Contains(strings.Join(r.Gaps, "\n"), c.want) || len(r.NUMA) != 0 || r.Error != nil {
			t.Errorf("%s: %+v", c.name, r)
		}
		if len(c.m.disks) != 0 {
			t.Errorf("%s: disks were read", c.name)
		}
	}
	if r := (Meter{}).Measure(t.Context(), wire.SpeedParams{}); r.Error == nil {
		t.Error("nothing to do is no error")
	}
	locked := func(context.Context) (func(), error) { return nil, errors.New("another burn-in runs") }
	if r := (Meter{FS: node(""), Lock: locked}).Measure(t.Context(), p); r.Error == nil {
		t.Error("two loads at once")
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("0-55,112-167")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range parseList(text) {
			if n > mostCPUs && !strings.Contains(text, fmt.Sprint(n)) {
				t.Errorf("%q has %d", text, n)
			}
		}
	})
}
