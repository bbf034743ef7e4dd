// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// BenchmarkJob is log in, set boot, read back, switch on, read back, log out,
// both sides of the wire, on a network in memory. With -cpu 1 the time is the
// CPU's.
func BenchmarkJob(b *testing.B) {
	p := openBMC()
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("kept=%t", kept), func(b *testing.B) {
			r := newRack(b, 1, p, quick, Options{Hardware: hardware()})
			defer r.stop()
			_ = r.bmcs[0].Press(chassis.PressOn)
			eventually(b, "on", func() bool { return r.bmcs[0].Power() == chassis.On })
			client := r.client()
			b.ReportAllocs()
			for b.Loop() {
				if err := job(client, "https://10.1.0.0", p); err != nil {
					b.Fatal(err)
				}
				if !kept {
					client.CloseIdleConnections()
				}
			}
			client.CloseIdleConnections()
		})
	}
}

// BenchmarkGet is one read of the system, without the wire.
func BenchmarkGet(b *testing.B) {
	p := openBMC()
	s := newServer(b.Context(), chassis.New(config(p, quick)), p, Options{Hardware: hardware()})
	rt, args := s.match(root + "/Systems/system")
	c := &call{s: s, path: root + "/Systems/system", args: args}
	b.ReportAllocs()
	for b.Loop() {
		o := rt.get(c)
		c.finish(o)
		if body, _ := s.encode(o); len(body) == 0 {
			b.Fatal("empty")
		}
	}
}

// BenchmarkIdle measures what a BMC that has done its job and is asked no more
// keeps in memory.
func BenchmarkIdle(b *testing.B) {
	const n = 1024
	p := dgxH100()
	for b.Loop() {
		before := memory()
		r := newRack(b, n, p, chassis.Timing{}, Options{})
		fresh := memory()
		client := r.client()
		for i := range n {
			if err := job(client, fmt.Sprintf("https://10.1.%d.%d", i>>8, i&255), p); err != nil {
				b.Fatal(err)
			}
			client.CloseIdleConnections()
		}
		client = nil
		used := memory()
		b.ReportMetric(float64(fresh-before)/n, "B/fresh-bmc")
		b.ReportMetric(float64(used-before)/n, "B/used-bmc")
		r.stop()
	}
}

func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
