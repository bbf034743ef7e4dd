// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/crypto"
	"github.com/bougou/go-ipmi/pkg/protocol"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

func newController(t testing.TB) *controller {
	c := chassis.New(chassis.Config{Node: "n1", Accounts: []chassis.Account{{Username: "admin", Password: "secret", Role: "Administrator", Enabled: true}}})
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); wg.Wait() })
	return &controller{c: c, ctx: ctx, clk: clock.Wall{}, wg: &wg}
}

// exchange sends a message of the key exchange and returns the answer's payload.
func exchange(t *testing.T, k *controller, kind uint8, payload []byte) []byte {
	t.Helper()
	out := k.answer(protocol.BuildRMCPPlusPacket(kind, 0, 0, 0, payload))
	if len(out) < payloadStart {
		t.Fatalf("no answer to message %#x", kind)
	}
	return out[payloadStart:]
}

func openRequest() []byte {
	p := make([]byte, openLength)
	copy(p[4:], "abcd")
	copy(p[8:], []byte{0, 0, 0, 8, 3, 0, 0, 0})  // HMAC-SHA256
	copy(p[16:], []byte{1, 0, 0, 8, 4, 0, 0, 0}) // HMAC-SHA256-128
	copy(p[24:], []byte{2, 0, 0, 8, 1, 0, 0, 0}) // AES
	return p
}

// TestWrongKeys: a console that says that the keys differ, and one that answers
// with a wrong code, count as failed log-ins.
func TestWrongKeys(t *testing.T) {
	t.Parallel()
	k := newController(t)
	for i := range 5 {
		id := exchange(t, k, protocol.PayloadOpenSessionRequest, openRequest())[8:12]
		rakp1 := append(make([]byte, rakp1Length), "admin"...)
		copy(rakp1[4:], id)
		rakp1[24], rakp1[27] = 0x14, 5
		if out := exchange(t, k, protocol.PayloadRAKPMessage1, rakp1); out[1] != 0 {
			t.Fatalf("RAKP 2 has status %#x", out[1])
		}
		rakp3 := make([]byte, rakp3Length+32)
		copy(rakp3[4:], id)
		if i%2 == 0 {
			rakp3 = rakp3[:rakp3Length]
			rakp3[1] = 0x0f
		}
		if out := exchange(t, k, protocol.PayloadRAKPMessage3, rakp3); out[1] == 0 {
			t.Fatal("wrong keys were taken")
		}
	}
	if !k.c.Locked("admin") {
		t.Error("five failures did not lock the account")
	}
}

// TestRepeated: a console that missed the last answer of the key exchange gets it
// again, and nobody else can end the session by asking.
func TestRepeated(t *testing.T) {
	t.Parallel()
	k := newController(t)
	id := exchange(t, k, protocol.PayloadOpenSessionRequest, openRequest())[8:12]
	rakp1 := append(make([]byte, rakp1Length), "admin"...)
	copy(rakp1[4:], id)
	rakp1[24], rakp1[27] = 0x14, 5
	rakp2 := exchange(t, k, protocol.PayloadRAKPMessage1, rakp1)
	code, err := crypto.RAKP3AuthCode(types.AuthAlg_HMAC_SHA256, rakp2[8:24], binary.LittleEndian.Uint32([]byte("abcd")), 0x14, "admin", crypto.PadPassword20([]byte("secret")))
	if err != nil {
		t.Fatal(err)
	}
	rakp3 := append(make([]byte, rakp3Length), code...)
	copy(rakp3[4:], id)
	one := exchange(t, k, protocol.PayloadRAKPMessage3, rakp3)
	rakp3[20] ^= 1
	two := exchange(t, k, protocol.PayloadRAKPMessage3, rakp3)
	if one[1] != 0 || !bytes.Equal(one, two) {
		t.Errorf("answers % x and % x", one, two)
	}
	sess, err := k.lib.Sessions.Get(binary.LittleEndian.Uint32(id))
	if err != nil || sess.PrivilegeLevel != bmc.PrivilegeLevelUser || sess.MaxPrivilege != bmc.PrivilegeLevelAdministrator {
		t.Errorf("session %+v, %v", sess, err)
	}
}

// TestMakers: who a BMC says that it is, and in which firmware.
func TestMakers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		personality, manufacturer string
		want                      uint32
	}{
		{"", "Supermicro", 10876}, {"", "Dell Inc.", 674}, {"", "NVIDIA", 5703}, {"", "LENOVO", 19046}, {"", "Quanta", 49871}, {"", "", 49871},
		{"idrac", "Supermicro", 674}, {"unknown", "NVIDIA", 5703},
	} {
		if got := deviceInfo(tt.personality, tt.manufacturer).ManufacturerID; got != tt.want {
			t.Errorf("%q, %q: %d, want %d", tt.personality, tt.manufacturer, got, tt.want)
		}
	}
	for version, want := range map[string][2]uint8{"1.03.18": {1, 0x03}, "01.13.06": {1, 0x13}, "7.10.30.00": {7, 0x10}, "v24.01-5": {24, 0x01}, "": {0, 0}, "x": {0, 0}, "2": {2, 0}} {
		if major, minor := splitRevision(version); [2]uint8{major, minor} != want {
			t.Errorf("%q: %d.%x, want %v", version, major, minor, want)
		}
	}
}

// TestNoSession: nothing that changes or tells anything is answered outside a
// session, and what follows a wrong one is silence.
func TestNoSession(t *testing.T) {
	t.Parallel()
	k := newController(t)
	control := message(types.CommandChassisControl, 1)
	out := k.answer(protocol.BuildRMCPPlusPacket(protocol.PayloadIPMI, 0, 0, 0, control))
	if len(out) < payloadStart+7 || out[payloadStart+6] != byte(types.CodeCannotExecuteCommandSecurityRestrict) {
		t.Errorf("power on without a session: % x", out)
	}
	if out := k.answer(protocol.BuildRMCPPlusPacket(protocol.PayloadIPMI, 0, 7, 1, control)); out != nil {
		t.Errorf("power on in an unknown session: % x", out)
	}
	if k.c.Power() != chassis.Off {
		t.Error("the power was switched")
	}
}

func message(c types.Command, data ...byte) []byte {
	m := []byte{0x20, byte(c.NetFn) << 2, 0, 0x81, 4, c.ID}
	m[2] = protocol.Checksum(m[:2])
	m = append(m, data...)
	return append(m, protocol.Checksum(m[3:]))
}

// TestExpiry: flags are forgotten after 60 s when no chassis control comes.
func TestExpiry(t *testing.T) {
	for name, tt := range map[string]struct {
		keep    byte
		control bool
		want    string
	}{
		"nothing comes":   {0, false, "Disabled"},
		"asked to keep":   {0x08, false, "Once"},
		"control in time": {0, true, "Once"},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newController(t)
			k.prepare()
			k.setBootOption([]byte{3, tt.keep})
			if _, code := k.setBootOption([]byte{5, 0xa0, 0x04, 0, 0, 0}); code != types.CodeOK {
				t.Fatal(code)
			}
			time.Sleep(59 * time.Second)
			if tt.control {
				k.control([]byte{1})
			}
			time.Sleep(2 * time.Second)
			if o := k.c.Override(); o.Enabled != tt.want {
				t.Errorf("%s: %+v, want %s", name, o, tt.want)
			}
		})
	}
}

// TestRestart: a BMC that starts anew has no sessions, and is silent meanwhile.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newController(t)
		open := protocol.BuildRMCPPlusPacket(protocol.PayloadOpenSessionRequest, 0, 0, 0, openRequest())
		if k.answer(open) == nil || k.lib.Sessions.Count() != 1 {
			t.Fatal("no session")
		}
		k.c.ResetBMC()
		if k.answer(open) != nil {
			t.Error("answers while it starts")
		}
		time.Sleep(61 * time.Second)
		if k.answer(open) == nil || k.lib.Sessions.Count() != 1 {
			t.Error("an old session is left")
		}
	})
}

// TestRow measures 4,096 BMCs in memory: what one costs idle, and after an open
// session request.
func TestRow(t *testing.T) {
	const row = 4096
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		ctx, cancel := context.WithCancel(t.Context())
		before := measure()
		var wg sync.WaitGroup
		var at []net.Addr
		for i := range row {
			addr := netip.AddrFrom4([4]byte{10, 77, byte(i >> 8), byte(i)})
			pc, err := m.At(addr).ListenPacket(ctx, "udp", netip.AddrPortFrom(addr, Port).String())
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, pc.LocalAddr())
			c := chassis.New(chassis.Config{Node: "n", Accounts: []chassis.Account{{Username: "admin", Password: "secret", Role: "Administrator", Enabled: true}}})
			wg.Go(func() { _ = Serve(ctx, pc, c, Options{}) })
		}
		synctest.Wait()
		idle := measure()
		console, err := m.At(netip.MustParseAddr("10.1.0.1")).ListenPacket(ctx, "udp", "10.1.0.1:5000")
		if err != nil {
			t.Fatal(err)
		}
		b, answers := make([]byte, 512), 0
		for _, a := range at {
			_, _ = console.WriteTo(protocol.BuildRMCPPlusPacket(protocol.PayloadOpenSessionRequest, 0, 0, 0, openRequest()), a)
			if n, _, err := console.ReadFrom(b); err == nil && n > payloadStart && b[payloadStart+1] == 0 {
				answers++
			}
		}
		busy := measure()
		t.Logf("a BMC: %d B idle, %d B once used; %d goroutines", (idle.heap-before.heap)/row, (busy.heap-before.heap)/row, busy.goroutines-before.goroutines)
		if answers != row {
			t.Errorf("%d of %d answered", answers, row)
		}
		if per := (busy.heap - before.heap) / row; per > 24<<10 {
			t.Errorf("%d bytes a BMC", per)
		}
		if n := busy.goroutines - before.goroutines; n > row {
			t.Errorf("%d goroutines for %d BMCs", n, row)
		}
		cancel()
		wg.Wait()
		_ = console.Close()
	})
}

type usage struct {
	heap       uint64 // and stacks, bytes
	goroutines int
}

func measure() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()}
}

// FuzzAnswer: no datagram makes the BMC panic or switches the power.
func FuzzAnswer(f *testing.F) {
	f.Add(protocol.BuildRMCPPlusPacket(protocol.PayloadOpenSessionRequest, 0, 0, 0, openRequest()))
	f.Add(protocol.BuildRMCPPlusPacket(protocol.PayloadRAKPMessage1, 0, 0, 0, append(make([]byte, 28), "admin"...)))
	f.Add(protocol.BuildRMCPPlusPacket(protocol.PayloadRAKPMessage3, 0, 0, 0, make([]byte, 40)))
	f.Add(protocol.BuildRMCPPlusPacket(protocol.PayloadIPMI, 0, 0, 0, message(types.CommandGetChannelAuthCapabilities, 0x8e, 4)))
	f.Add(protocol.BuildRMCPPlusPacket(protocol.PayloadIPMI, 0xc0, 1, 1, make([]byte, 48)))
	v15, _ := hex.DecodeString("0600ff07000000000000000000092018c88100388e04b5")
	f.Add(v15)
	f.Fuzz(func(t *testing.T, b []byte) {
		k := newController(t)
		k.answer(b)
		if k.c.Power() != chassis.Off {
			t.Error("the power was switched")
		}
	})
}

// FuzzCommand: no command's data makes a handler panic, in a session of an
// administrator.
func FuzzCommand(f *testing.F) {
	f.Add([]byte{5, 0xe0, 4, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 0, 255})
	f.Add([]byte{1, 0, 'C', 'L', 'R', 0xaa})
	f.Fuzz(func(t *testing.T, b []byte) {
		k := newController(t)
		k.prepare()
		id := exchange(t, k, protocol.PayloadOpenSessionRequest, openRequest())[8:12]
		sess, err := k.lib.Sessions.Get(binary.LittleEndian.Uint32(id))
		if err != nil {
			t.Fatal(err)
		}
		sess.PrivilegeLevel, sess.MaxPrivilege = 4, 4
		for fn := 0; fn <= 0x0c; fn += 2 {
			for cmd := range 0x60 {
				k.dispatch(sess, uint8(fn), uint8(cmd), b)
			}
		}
	})
}
