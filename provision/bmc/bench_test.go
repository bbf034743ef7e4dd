// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/bougou/go-ipmi/pkg/bmc"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/peertest"
)

// The same question, "is it on?", asked of one ipmi_sim in four ways. Run:
//
//	go test -run '^$' -bench PowerStatus ./provision/bmc
func BenchmarkPowerStatus(b *testing.B) {
	s := startSim(b)
	b.Run("ipmitool", func(b *testing.B) {
		peertest.Need(b, "ipmitool")
		for b.Loop() {
			cmd := exec.Command("ipmitool", "-I", "lanplus", "-C", "3", "-H", s.Addr.Addr().String(),
				"-p", strconv.Itoa(int(s.Addr.Port())), "-U", simUser, "-E", "chassis", "power", "status")
			cmd.Env = append(os.Environ(), "IPMI_PASSWORD="+simPassword)
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("connect", func(b *testing.B) {
		for b.Loop() {
			session, err := Open(b.Context(), s.target(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := session.PowerState(b.Context()); err != nil {
				b.Fatal(err)
			}
			_ = session.Close(b.Context())
		}
	})
	b.Run("session", func(b *testing.B) {
		session := open(b, s.target())
		for b.Loop() {
			if _, err := session.PowerState(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pool", func(b *testing.B) {
		h := pool(b, Options{Clock: clock.Wall{}}).Handle(s.target())
		for b.Loop() {
			if _, err := h.PowerState(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// One sweep over 200 BMCs of go-ipmi, first with log-in and log-out, then with
// kept sessions. The BMCs run in the same process and take their share.
func BenchmarkSweep(b *testing.B) {
	const bmcs = 200
	targets := make([]Target, bmcs)
	for i := range targets {
		targets[i], _, _ = startBMC(b, bmc.DeviceInfo{})
	}
	sweep := func(b *testing.B, p *Pool) {
		var wg sync.WaitGroup
		for _, t := range targets {
			wg.Go(func() {
				if _, err := p.Handle(t).PowerState(b.Context()); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
	b.Run("connect", func(b *testing.B) {
		for b.Loop() {
			p := NewPool(Options{})
			sweep(b, p)
			_ = p.Close(b.Context())
		}
	})
	b.Run("kept", func(b *testing.B) {
		p := pool(b, Options{})
		for b.Loop() {
			sweep(b, p)
		}
	})
}
