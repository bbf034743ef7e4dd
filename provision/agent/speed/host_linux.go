// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// Host is this very system. Its clock is the wall's: what it measures is real.
type Host struct{}

const (
	// elements are computed between two looks at the time: 16 KiB of each array.
	elements = 2 << 10
	// rounds are computed between two looks at the time, some 0.1 ms.
	rounds = 1 << 16
	// blockBytes and readers are how a disk is read: one that has a queue needs several
	// requests at once to give all that it can.
	blockBytes, readers = 1 << 20, 8
	bytesOfElement      = 24 // of a triad: two are read, and one is written
)

// wall is what the measurements are timed by.
var wall = clock.Wall{}

// onEach runs a piece of work on each CPU until the time is over, all at once, and returns
// what each has done a second. prepare is called on the CPU first.
func onEach(ctx context.Context, cpus []int, long time.Duration, prepare func() (work func() float64, done func(), err error)) ([]float64, error) {
	// A runtime that counts by a quota has fewer threads than CPUs, and cores would take turns.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), len(cpus)+1)))
	rates, errs := make([]float64, len(cpus)), make([]error, len(cpus))
	var ready, ended sync.WaitGroup
	start, stop := make(chan struct{}), atomic.Bool{}
	ready.Add(len(cpus))
	for i, cpu := range cpus {
		ended.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its affinity
			var set unix.CPUSet
			set.Set(cpu)
			work, done, err := (func() float64)(nil), func() {}, unix.SchedSetaffinity(0, &set)
			if err == nil {
				work, done, err = prepare()
			}
			if err != nil {
				errs[i] = fmt.Errorf("CPU %d: %w", cpu, err)
			}
			ready.Done()
			if err != nil {
				return
			}
			defer done()
			<-start
			amount, began := 0.0, wall.Now()
			took := time.Duration(0)
			for took < long && !stop.Load() {
				amount += work()
				took = wall.Now().Sub(began)
			}
			if took > 0 {
				rates[i] = amount / took.Seconds()
			}
		})
	}
	ready.Wait()
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		stop.Store(true)
	}
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	close(start)
	ended.Wait()
	for _, err := range append(errs, ctx.Err()) {
		if err != nil {
			return nil, err
		}
	}
	return rates, nil
}

// Triad implements Machine. The pages of the arrays are touched by the core that works on
// them first, so that they are of its NUMA node.
func (Host) Triad(ctx context.Context, cpus []int, bytes int64, long time.Duration) ([]float64, error) {
	return onEach(ctx, cpus, long, func() (func() float64, func(), error) {
		all, err := unix.Mmap(-1, 0, int(3*bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return nil, nil, fmt.Errorf("%d bytes of memory: %w", 3*bytes, err)
		}
		_ = unix.Madvise(all, unix.MADV_HUGEPAGE) // where it is refused, small pages do
		n := int(bytes / 8)
		numbers := unsafe.Slice((*float64)(unsafe.Pointer(&all[0])), 3*n)
		a, b, c := numbers[:n], numbers[n:2*n], numbers[2*n:]
		for i := range n {
			a[i], b[i], c[i] = 0, 1, 2
		}
		at := 0
		work := func() float64 {
			end := min(at+elements, n)
			triad(a[at:end], b[at:end], c[at:end])
			did := end - at
			if at = end; at == n {
				at = 0
			}
			return float64(did * bytesOfElement)
		}
		return work, func() { _ = unix.Munmap(all) }, nil
	})
}

// triad is that of STREAM.
func triad(a, b, c []float64) {
	b, c = b[:len(a)], c[:len(a)]
	for i := range a {
		a[i] = b[i] + 3*c[i]
	}
}

// Rounds implements Machine.
func (Host) Rounds(ctx context.Context, cpus []int, long time.Duration) ([]float64, error) {
	return onEach(ctx, cpus, long, func() (func() float64, func(), error) {
		x := uint64(1)
		return func() float64 { x = turn(x, rounds); return rounds }, func() { kept.Store(x) }, nil
	})
}

// kept is what rounds came to, so that a compiler does not leave them out.
var kept atomic.Uint64

// turn computes rounds, each of which needs the result of the one before: their time is that
// of so many clocks, whatever the memory does.
func turn(x uint64, n int) uint64 {
	for range n {
		x = x*6364136223846793005 + 1442695040888963407 // Knuth, MMIX
		x ^= x >> 29
	}
	return x
}

// Read implements Machine. Only reading is asked of the kernel: nothing is written.
func (Host) Read(ctx context.Context, path string, size, most int64, long time.Duration) (n int64, took time.Duration, failed bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return 0, 0, false, errkind.New(errkind.Unsupported, "%w", err)
	}
	defer f.Close()
	r := reading{f: f, end: min(size, most) / blockBytes * blockBytes}
	if r.end == 0 {
		return 0, 0, false, errkind.New(errkind.Unsupported, "%s has %d bytes: too few to be timed", path, size)
	}
	if _, err = f.ReadAt(disk.Aligned(blockBytes), 0); err != nil { // a disk that stands still turns up
		return 0, 0, errors.Is(err, unix.EIO), errkind.New(errkind.Internal, "%w", err)
	}
	began := wall.Now()
	var all sync.WaitGroup
	for range readers {
		all.Go(func() { r.read(ctx, began, long) })
	}
	all.Wait()
	took = wall.Now().Sub(began)
	if err := r.err.Load(); err != nil {
		return 0, 0, errors.Is(*err, unix.EIO), errkind.New(errkind.Internal, "%w", *err)
	}
	return r.done.Load(), took, false, ctx.Err()
}

// reading is a disk that is read.
type reading struct {
	f          *os.File
	end        int64
	next, done atomic.Int64
	err        atomic.Pointer[error] // the last
}

// read takes block after block.
func (r *reading) read(ctx context.Context, began time.Time, long time.Duration) {
	block := disk.Aligned(blockBytes)
	for ctx.Err() == nil && wall.Now().Sub(began) < long && r.err.Load() == nil {
		at := r.next.Add(blockBytes) - blockBytes
		if at >= r.end {
			return
		}
		n, err := r.f.ReadAt(block, at)
		r.done.Add(int64(n))
		if err != nil {
			r.err.Store(&err)
		}
	}
}
