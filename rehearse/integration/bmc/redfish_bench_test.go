// SPDX-License-Identifier: Apache-2.0

package bmc_test

import (
	"context"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

// fleet serves n BMCs on a network in memory.
func fleet(b *testing.B, n int) (targets []bmc.Target, o bmc.Options) {
	m := network.NewMemory()
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	b.Cleanup(func() { cancel(); wg.Wait() })
	p, _ := redfish.FindPersonality("openbmc")
	for i := range n {
		at := netip.AddrFrom4([4]byte{10, 77, byte(i >> 8), byte(i)})
		c := chassis.New(chassis.Config{Node: "n", Serial: rigSerial, UUID: rigUUID, BIOS: p.Attributes, Components: p.Firmware,
			Accounts: []chassis.Account{{ID: 2, Username: rigUser, Password: rigPassword, Role: "Administrator", Enabled: true}}})
		t := bmc.Target{Node: "n", Protocol: bmc.Redfish, Addr: netip.AddrPortFrom(at, 443), Username: rigUser, Password: secret.NewValue(rigPassword)}
		ln, err := m.At(at).Listen(ctx, "tcp", t.Addr.String())
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() { _ = c.Run(ctx) })
		wg.Go(func() { _ = redfish.Serve(ctx, ln, c, p, redfish.Options{Address: at}) })
		targets = append(targets, t)
	}
	return targets, bmc.Options{Network: m.At(netip.MustParseAddr("10.78.0.1"))}
}

// What a Redfish BMC costs, the simulated one included: a log-in with one
// question and log-out, one question in a kept session, and the memory of 256 kept
// sessions, those of the simulated BMCs included.
func BenchmarkRedfish(b *testing.B) {
	b.Run("connect", func(b *testing.B) {
		targets, o := fleet(b, 1)
		for b.Loop() {
			p := bmc.NewPool(o)
			if _, err := p.Handle(targets[0]).PowerState(b.Context()); err != nil {
				b.Fatal(err)
			}
			_ = p.Close(b.Context())
		}
	})
	b.Run("kept", func(b *testing.B) {
		targets, o := fleet(b, 1)
		p := bmc.NewPool(o)
		for b.Loop() {
			if _, err := p.Handle(targets[0]).PowerState(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		_ = p.Close(b.Context())
	})
	b.Run("memory", func(b *testing.B) {
		const n = 256
		targets, o := fleet(b, n)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		p := bmc.NewPool(o)
		for _, t := range targets {
			if _, err := p.Handle(t).PowerState(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		goroutines := runtime.NumGoroutine()
		for b.Loop() {
			if _, err := p.Handle(targets[0]).PowerState(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/n/1024, "KiB/session")
		b.ReportMetric(float64(goroutines)/n, "goroutines/session")
		_ = p.Close(b.Context())
	})
}
