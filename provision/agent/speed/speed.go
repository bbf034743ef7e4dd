// SPDX-License-Identifier: Apache-2.0

// Package speed measures how fast the host of an installed node is: the bandwidth of its
// memory, what its cores compute while all of them work, and how fast its disks are read.
// It judges nothing, and writes to no disk.
//
// The programs that are usual for it, stream and fio, are on few nodes, and are built in
// ways that make figures of two nodes differ; this is the same code on every node.
package speed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

const (
	// once is how long each measurement of the memory and of the CPUs takes.
	once = time.Second
	// arrayBytes is how large each of the three arrays of a core is: STREAM asks for arrays
	// of four times the caches at least, and no server has more than 12 MB of cache for a core.
	arrayBytes = 32 << 20
	// leastArray is the size below which arrays are in the caches.
	leastArray = 4 << 20
	// memoryShare of what is available is taken at most.
	memoryShare = 4
)

// Machine does the work that is measured. It is told CPUs by their numbers.
type Machine interface {
	// Triad computes a = b + s*c on all of the CPUs at once, each in three arrays of so many
	// bytes that are its own, and returns the bytes a second that each has moved.
	Triad(ctx context.Context, cpus []int, bytes int64, long time.Duration) ([]float64, error)
	// Rounds computes in registers on all of the CPUs at once, and returns the rounds a
	// second of each.
	Rounds(ctx context.Context, cpus []int, long time.Duration) ([]float64, error)
	// Read reads a device of size bytes from its start until it has read the most, or so long. failed
	// tells an error of the disk itself from others.
	Read(ctx context.Context, path string, size, most int64, long time.Duration) (n int64, took time.Duration, failed bool, err error)
}

// Meter measures a node.
type Meter struct {
	FS      sysfs.FS
	Machine Machine
	// Lock makes sure that nothing else loads the node.
	Lock func(context.Context) (release func(), err error)
}

// Measure measures everything, one after the other.
func (m Meter) Measure(ctx context.Context, p wire.SpeedParams) wire.Speed {
	if p.Memory < 1 || p.CPU < 1 || p.Disk < 0 || p.Bytes < 0 {
		return failed(errkind.New(errkind.Invalid, "measurements need one time or more of the memory and the CPUs"))
	}
	release, err := m.Lock(ctx)
	if err != nil {
		return failed(err)
	}
	defer release()
	in := inspect.Inspector{FS: m.FS}
	r := wire.Speed{CPU: in.Chassis().CPU, DIMMs: in.Slots()}
	cores := findCores(m.FS)
	if len(cores) == 0 {
		r.Gaps = append(r.Gaps, "the kernel tells of no CPU: neither memory nor CPUs were measured")
	} else {
		m.memory(ctx, &r, cores, p.Memory)
		m.cpu(ctx, &r, cores, p.CPU)
	}
	if p.Disk > 0 {
		m.disks(ctx, &r, in.Drives(), p)
	}
	if err := ctx.Err(); err != nil {
		return failed(errkind.New(errkind.Timeout, "the measurements were told to stop"))
	}
	return r
}

func failed(err error) wire.Speed {
	return wire.Speed{Error: &wire.TaskError{Kind: errkind.Of(err).String(), Text: err.Error(), Action: errkind.Action(err)}}
}

// memory measures the bandwidth of each NUMA node, all at once.
func (m Meter) memory(ctx context.Context, r *wire.Speed, cores []core, times int) {
	bytes := min(arrayBytes, m.FS.AvailableMemory()/memoryShare/int64(3*len(cores)))
	if bytes < leastArray {
		r.Gaps = append(r.Gaps, fmt.Sprintf("the bandwidth of the memory was not measured: %d cores have arrays of less than %d MiB in a quarter of what is free", len(cores), leastArray>>20))
		return
	}
	best := map[int]*wire.NUMASpeed{}
	for range times {
		rates, err := m.Machine.Triad(ctx, numbers(cores), bytes, once)
		if err != nil {
			r.Gaps = append(r.Gaps, "the bandwidth of the memory was not measured: "+err.Error())
			return
		}
		sum, count := map[int]float64{}, map[int]int{}
		for i, c := range cores {
			sum[c.node] += rates[i]
			count[c.node]++
		}
		for node, rate := range sum {
			if best[node] == nil || rate > best[node].Rate {
				best[node] = &wire.NUMASpeed{Node: node, Cores: count[node], Rate: rate}
			}
		}
	}
	for _, n := range best {
		r.NUMA = append(r.NUMA, *n)
	}
	slices.SortFunc(r.NUMA, func(a, b wire.NUMASpeed) int { return a.Node - b.Node })
}

// cpu measures the cores, all at once. The median counts: a core that is held down most of
// the time is slow.
func (m Meter) cpu(ctx context.Context, r *wire.Speed, cores []core, times int) {
	all := make([][]float64, len(cores))
	for range times {
		rates, err := m.Machine.Rounds(ctx, numbers(cores), once)
		if err != nil {
			r.Gaps = append(r.Gaps, "the CPUs were not measured: "+err.Error())
			return
		}
		for i, v := range rates {
			all[i] = append(all[i], v)
		}
	}
	for i, c := range cores {
		slices.Sort(all[i])
		r.Cores = append(r.Cores, wire.CoreSpeed{CPU: c.cpu, Node: c.node, Rate: all[i][len(all[i])/2]})
	}
}

// disks reads from each fixed disk, one after the other.
func (m Meter) disks(ctx context.Context, r *wire.Speed, drives []wire.Disk, p wire.SpeedParams) {
	for _, d := range drives {
		if place := d.ByPath; strings.Contains(place, "usb") { // a stick, or a disk of the BMC
			continue
		}
		one := wire.DiskSpeed{Disk: d}
		n, took, bad, err := m.Machine.Read(ctx, d.Path, d.Size, p.Bytes, time.Duration(p.Disk*float64(time.Second)))
		if err != nil {
			one.Failed, one.Why = bad, err.Error()
		} else {
			one.Read, one.Seconds = n, took.Seconds()
		}
		r.Disks = append(r.Disks, one)
	}
}
