// SPDX-License-Identifier: Apache-2.0

// Package bmc_test tries the drivers of provision/bmc on the simulated BMCs of the virtual
// rack: one conformance suite for all, and what each protocol has of its own.
package bmc_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/ipmi"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
	"github.com/ironrail/ironrail/rehearse/virtual/rpc"
)

// The credential of the BMCs. The password is a canary: no error may contain it.
const (
	rigUser     = "admin"
	rigPassword = "canary-91be3c!Aa"
	rigSerial   = "SN-n1"
	rigUUID     = "00112233-4455-6677-8899-aabbccddeeff"
)

var rigAddr = netip.MustParseAddr("10.77.1.1")

// subject is one driver with one simulated BMC.
type subject struct {
	name     string
	protocol bmc.Protocol
	maker    string                // personality; for IPMI ""
	quirks   func(*redfish.Quirks) // nil: those of the personality
	noPXE    bool                  // the node boots by UEFI HTTP only
}

var subjects = []subject{
	{name: "ipmi", protocol: bmc.IPMI},
	{name: "openbmc", protocol: bmc.Redfish, maker: "openbmc"},
	{name: "idrac", protocol: bmc.Redfish, maker: "idrac", noPXE: true}, // a PowerEdge XE9680,
	{name: "supermicro", protocol: bmc.Redfish, maker: "supermicro"},
	{name: "dgx-h100", protocol: bmc.Redfish, maker: "dgx-h100"},
	{name: "rpc", protocol: bmc.RPC},
}

// board boots at once and then idles.
type board struct{ c *chassis.Chassis }

func (b board) Run(ctx context.Context, _ bool) chassis.Exit {
	b.c.ApplyBIOS()
	b.c.TakeBoot()
	b.c.SetPhase("OS")
	<-ctx.Done()
	return chassis.Halt
}

// lab is one BMC on a network in memory.
type lab struct {
	*testing.T
	c      *chassis.Chassis
	net    *network.Memory
	target bmc.Target
	noPXE  bool
	maker  string // as of its subject
	opts   bmc.Options
}

// run runs body in virtual time with one BMC.
func (s subject) run(t *testing.T, body func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		cfg := chassis.Config{Node: "n1", Manufacturer: "Acme", Product: "M1", Serial: rigSerial, UUID: rigUUID, BoardSerial: "BD-n1", ChassisSerial: "CH-n1",
			Accounts: []chassis.Account{{ID: 2, Username: rigUser, Password: rigPassword, Role: "Administrator", Enabled: true}}, Seed: 1}
		p, isRedfish := redfish.FindPersonality(s.maker)
		if isRedfish {
			cfg.Manufacturer, cfg.Product, cfg.BIOS, cfg.Components = p.Manufacturer, p.Model, p.Attributes, p.Firmware
			cfg.Accounts[0].ID = p.AdminID
		}
		c := chassis.New(cfg)
		c.SetBoard(board{c})
		wg.Go(func() { _ = c.Run(ctx) })
		m := network.NewMemory()
		l := &lab{T: t, c: c, net: m, noPXE: s.noPXE, maker: s.maker, opts: bmc.Options{Network: m.At(netip.MustParseAddr("10.77.0.1"))},
			target: bmc.Target{Node: "n1", Protocol: s.protocol, Username: rigUser, Password: secret.NewValue(rigPassword), Addr: netip.AddrPortFrom(rigAddr, 623)}}
		if isRedfish {
			l.target.Addr = netip.AddrPortFrom(rigAddr, 443)
			o := redfish.Options{Address: rigAddr}
			if s.quirks != nil {
				q := p.Quirks
				s.quirks(&q)
				o.Quirks = &q
			}
			ln, err := m.At(rigAddr).Listen(ctx, "tcp", l.target.Addr.String())
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() { _ = redfish.Serve(ctx, ln, c, p, o) })
		} else if s.protocol == bmc.RPC {
			l.target.Endpoint = "https://10.77.0.9:8443/power"
			at := netip.MustParseAddr("10.77.0.9")
			ln, err := m.At(at).Listen(ctx, "tcp", "10.77.0.9:8443")
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				_ = rpc.Serve(ctx, ln, rpc.Options{Address: at, Node: func(host string) (rpc.Node, bool) {
					return rpc.Node{Chassis: c, Secret: rigPassword}, host == rigAddr.String()
				}})
			})
		} else {
			pc, err := m.At(rigAddr).ListenPacket(ctx, "udp", l.target.Addr.String())
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() { _ = ipmi.Serve(ctx, pc, c, ipmi.Options{}) })
		}
		body(l)
	})
}

// open opens a session that the lab closes.
func (l *lab) open() *bmc.Session {
	l.Helper()
	s, err := bmc.Open(l.Context(), l.target, l.opts)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = s.Close(context.WithoutCancel(l.Context())) })
	return s
}

// each runs body as a test of every subject.
func each(t *testing.T, body func(l *lab)) {
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, body)
		})
	}
}

// telling runs body as a test of every subject that tells more than the power.
func telling(t *testing.T, body func(l *lab)) {
	each(t, func(l *lab) {
		if l.target.Protocol != bmc.RPC {
			body(l)
		}
	})
}

// press brings the node into a power state before the test.
func (l *lab) press(a chassis.Action) {
	if err := l.c.Press(a); err != nil {
		l.Fatal(err)
	}
	time.Sleep(time.Minute)
}

// clean fails the test when the password is in an error.
func (l *lab) clean(err error) {
	l.Helper()
	if text := fmt.Sprintf("%v %+v %#v %s", err, err, err, errkind.Action(err)); strings.Contains(text, rigPassword) {
		l.Errorf("the password is in %q", text)
	}
}

func TestConformPower(t *testing.T) {
	each(t, func(l *lab) {
		s := l.open()
		steps := []struct {
			do      bmc.PowerAction
			sent    int
			verdict bmc.Verdict
			after   chassis.Power
			counts  chassis.Counts
		}{
			{bmc.On, 1, bmc.Verified, chassis.On, chassis.Counts{PowerOns: 1}},
			{bmc.On, 0, bmc.Verified, chassis.On, chassis.Counts{PowerOns: 1}},
			{bmc.Cycle, 2, bmc.Verified, chassis.On, chassis.Counts{PowerOns: 2, PowerOffs: 1}},
			{bmc.SoftOff, 1, bmc.Verified, chassis.Off, chassis.Counts{PowerOns: 2, PowerOffs: 2}},
			{bmc.Off, 0, bmc.Verified, chassis.Off, chassis.Counts{PowerOns: 2, PowerOffs: 2}},
			{bmc.Cycle, 1, bmc.Verified, chassis.On, chassis.Counts{PowerOns: 3, PowerOffs: 2}},
			{bmc.Off, 1, bmc.Verified, chassis.Off, chassis.Counts{PowerOns: 3, PowerOffs: 3}},
		}
		for i, st := range steps {
			out, err := s.SetPower(l.Context(), st.do)
			if err != nil || out.Sent != st.sent || out.Verdict != st.verdict || l.c.Power() != st.after || l.c.Counters() != st.counts {
				l.Errorf("step %d, %s: %+v, %v; power %s, %+v, want %+v", i, st.do, out, err, l.c.Power(), l.c.Counters(), st.counts)
			}
		}
		if out, err := s.SetPower(l.Context(), bmc.Reset); errkind.Of(err) != errkind.Refused || out.Sent != 0 {
			l.Errorf("reset of a node that is off: %+v, %v", out, err)
		}
		l.press(chassis.PressOn)
		out, err := s.SetPower(l.Context(), bmc.Reset)
		time.Sleep(time.Minute)
		if err != nil || out.Verdict == bmc.Contradicted || l.c.Power() != chassis.On || l.c.Counters().Resets+l.c.Counters().PowerOffs != 4 {
			l.Errorf("reset: %+v, %v, %+v", out, err, l.c.Counters())
		}
	})
}

// A node that is between two states is waited for.
func TestConformTransition(t *testing.T) {
	each(t, func(l *lab) {
		s := l.open()
		if err := l.c.Press(chassis.PressOn); err != nil {
			l.Fatal(err)
		}
		if out, err := s.SetPower(l.Context(), bmc.Cycle); err != nil || out.Verdict != bmc.Verified || l.c.Power() != chassis.On {
			l.Errorf("%+v, %v, power %s", out, err, l.c.Power())
		}
	})
}

func TestConformBoot(t *testing.T) {
	telling(t, func(l *lab) {
		s := l.open()
		for _, b := range []struct {
			ask  bmc.Boot
			want chassis.Override
			only bmc.Protocol
		}{
			{bmc.Boot{Device: bmc.PXE, Once: true, UEFI: true}, chassis.Override{Enabled: "Once", Target: chassis.BootPXE, UEFI: true}, ""},
			{bmc.Boot{Device: bmc.Disk, Once: true, UEFI: true}, chassis.Override{Enabled: "Once", Target: chassis.BootHDD, UEFI: true}, ""},
			{bmc.Boot{Device: bmc.HTTP, Once: true, UEFI: true}, chassis.Override{Enabled: "Once", Target: chassis.BootUEFIHTTP, UEFI: true}, bmc.Redfish},
			{bmc.Boot{Device: bmc.PXE, Once: true}, chassis.Override{Enabled: "Once", Target: chassis.BootPXE}, ""},
		} {
			out, err := s.SetBoot(l.Context(), b.ask)
			if b.only != "" && b.only != l.target.Protocol || l.noPXE && b.ask.Device == bmc.PXE {
				if errkind.Of(err) != errkind.Unsupported || out.Sent != 0 {
					l.Errorf("%+v: %+v, %v", b.ask, out, err)
				}
				continue
			}
			if err != nil || out.Verdict != bmc.Verified || out.Sent < 1 || l.c.Override() != b.want {
				l.Errorf("%+v: %+v, %v; the node has %+v", b.ask, out, err, l.c.Override())
			}
		}
		if out, err := s.SetBoot(l.Context(), bmc.Boot{}); err != nil || out.Verdict != bmc.Verified || l.c.Override().Enabled == "Once" && l.c.Override().Target != chassis.BootNone {
			l.Errorf("none: %+v, %v; the node has %+v", out, err, l.c.Override())
		}
	})
}

// A BMC that keeps a boot device for every boot, though it was asked for one, does what
// was asked; it is said, so that the device is put back, and it can be.
func TestBootLasts(t *testing.T) {
	t.Parallel()
	s := subject{name: "lasts", protocol: bmc.Redfish, maker: "openbmc", quirks: func(q *redfish.Quirks) { q.BootLasts = true }}
	s.run(t, func(l *lab) {
		b := l.open()
		out, err := b.SetBoot(l.Context(), bmc.Boot{Device: bmc.PXE, Once: true, UEFI: true})
		if err != nil || out.Verdict != bmc.Verified || !out.Persistent || out.Sent != 1 {
			l.Errorf("PXE once: %+v, %v", out, err)
		}
		if out, err := b.SetBoot(l.Context(), bmc.Boot{}); err == nil {
			l.Errorf("a target that the BMC does not know: %+v", out)
		}
		out, err = b.SetBoot(l.Context(), bmc.Boot{Device: bmc.Disk, UEFI: true})
		if err != nil || out.Verdict != bmc.Verified || out.Persistent || l.c.Override().Target != chassis.BootHDD {
			l.Errorf("disk: %+v, %v; the node has %+v", out, err, l.c.Override())
		}
	})
}

// A BMC that accepts the boot device and does not keep it is found out, and is
// asked twice, not forever.
func TestConformBootNotKept(t *testing.T) {
	telling(t, func(l *lab) {
		l.c.LoseWrites("boot")
		s := l.open()
		start := time.Now()
		out, err := s.SetBoot(l.Context(), bmc.Boot{Device: bmc.Disk, Once: true, UEFI: true})
		if errkind.Of(err) != errkind.Refused || out.Verdict != bmc.Contradicted || out.Sent != 2 || !strings.Contains(err.Error(), "does not keep it") || errkind.Action(err) == "" {
			l.Errorf("%+v, %v", out, err)
		}
		if spent := time.Since(start); spent > time.Minute {
			l.Errorf("took %s", spent)
		}
	})
}

func TestConformIdentity(t *testing.T) {
	telling(t, func(l *lab) {
		id, err := l.open().Identity(l.Context())
		if err != nil {
			l.Fatal(err)
		}
		if id.Serial() != rigSerial || id.Version() == "" || len(id.Gaps) > 0 {
			l.Errorf("serial %q, firmware %q, gaps %q", id.Serial(), id.Version(), id.Gaps)
		}
		if _, ok := id.GUID.Match(rigUUID); !ok {
			l.Errorf("guid %s", id.GUID)
		}
		if l.target.Protocol == bmc.Redfish && (id.Maker == "" || id.ProductName == "" || !strings.EqualFold(id.GUID.String(), rigUUID)) {
			l.Errorf("%+v", id)
		}
	})
}

// A refused credential reaches the BMC once in a pool's life.
func TestConformWrongPassword(t *testing.T) {
	each(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		defer p.Close(l.Context())
		wrong := l.target
		wrong.Password = secret.NewValue("wrong-" + rigPassword[:6])
		for range 10 {
			_, err := p.Handle(wrong).PowerState(l.Context())
			if errkind.Of(err) != errkind.Auth || errkind.Action(err) == "" || errors.Is(err, bmc.ErrLocked) {
				l.Fatalf("got %v", err)
			}
			l.clean(err)
		}
		if l.c.Locked(rigUser) {
			l.Error("the account was locked")
		}
		if _, err := p.Handle(l.target).PowerState(l.Context()); err != nil {
			l.Errorf("the right credential: %v", err)
		}
	})
}

// A BMC without mains answers nothing, and is back when mains are.
func TestConformNoMains(t *testing.T) {
	each(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		defer p.Close(l.Context())
		h := p.Handle(l.target)
		if _, err := h.PowerState(l.Context()); err != nil {
			l.Fatal(err)
		}
		l.c.Mains(0, false)
		l.c.Mains(1, false)
		if _, err := h.PowerState(l.Context()); errkind.Of(err) != errkind.Unreachable && errkind.Of(err) != errkind.Timeout {
			l.Errorf("without mains: %v", err)
		}
		l.c.Mains(0, true)
		time.Sleep(5 * time.Minute)
		if _, err := h.PowerState(l.Context()); err != nil {
			l.Errorf("with mains: %v", err)
		}
	})
}

// Idle sessions are given back, and the next request opens another one.
func TestConformIdle(t *testing.T) {
	each(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		ctx, cancel := context.WithCancel(l.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.KeepAlive(ctx) })
		for range 3 {
			if _, err := p.Handle(l.target).PowerState(l.Context()); err != nil {
				l.Error(err)
			}
			time.Sleep(time.Hour)
		}
		cancel()
		wg.Wait()
		if err := p.Close(l.Context()); err != nil {
			l.Error(err)
		}
	})
}

func TestConformSensors(t *testing.T) {
	telling(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		defer p.Close(l.Context())
		h := p.Handle(l.target)
		l.press(chassis.PressOn)
		err := bmc.Use(l.Context(), h, "read sensors", func(b bmc.Sensors) error {
			got, err := b.Sensors(l.Context())
			units := map[string]int{}
			for _, r := range got {
				units[r.Unit]++
			}
			if w, ok := bmc.Watts(got); !ok || w <= 0 || units["Cel"] == 0 || units["RPM"]+units["%"] == 0 {
				l.Errorf("%v W of %+v", w, got)
			}
			return err
		})
		if err != nil {
			l.Error(err)
		}
	})
}

func TestConformEventLog(t *testing.T) {
	telling(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		defer p.Close(l.Context())
		h := p.Handle(l.target)
		l.c.ClearLog()
		for range 5 {
			l.c.Log("Critical", "Memory", "uncorrectable ECC in DIMM A3")
		}
		err := bmc.Use(l.Context(), h, "read the log", func(b bmc.EventLog) error {
			got, err := b.EventLog(l.Context(), 3)
			if err != nil || len(got) != 3 || got[2].Severity == "OK" || got[2].Message == "" || got[2].Sensor != "Memory" || got[2].Created.IsZero() {
				l.Errorf("%+v, %v", got, err)
			}
			out, err := b.ClearEventLog(l.Context())
			if out.Verdict != bmc.Verified || len(l.c.Entries()) > 1 {
				l.Errorf("clear: %+v, %d left", out, len(l.c.Entries()))
			}
			return err
		})
		if err != nil {
			l.Error(err)
		}
	})
}

// TestConformDiagnostics: a BMC collects what it knows for its maker's support, twice, or
// says that it has no way to.
func TestConformDiagnostics(t *testing.T) {
	telling(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		defer p.Close(l.Context())
		h := p.Handle(l.target)
		for i := range 2 {
			var got []byte
			err := bmc.Use(l.Context(), h, "collect diagnostic data", func(b bmc.Diagnostics) (err error) {
				got, err = b.CollectDiagnostics(l.Context(), 1<<20)
				return err
			})
			collects := l.maker == "openbmc" || l.maker == "dgx-h100"
			if collects && (err != nil || len(got) < 50 || got[0] != 0x1f) || !collects && errkind.Of(err) != errkind.Unsupported {
				l.Errorf("%d: %d bytes, %v", i, len(got), err)
			}
		}
	})
}

// unusedAddr is an address at which the lab has no BMC.
func (l *lab) unusedAddr() netip.AddrPort {
	return netip.AddrPortFrom(l.target.Addr.Addr().Next(), l.target.Addr.Port())
}
