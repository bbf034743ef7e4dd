// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest/ipmisim"
	"github.com/ironrail/ironrail/internal/secret"
)

// open opens a session for the test.
func open(t testing.TB, target Target) *Session {
	t.Helper()
	s, err := Open(t.Context(), target, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// noCanary fails the test when the password is in a text.
func noCanary(t testing.TB, values ...any) {
	t.Helper()
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, simPassword) {
				t.Errorf("the password is in %q", text)
			}
		}
	}
}

func TestPeerPowerActions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		before  string // content of the power file
		action  PowerAction
		verdict Verdict
		writes  string // what the BMC carried out
		after   string // what ipmitool says then
		kind    errkind.Kind
		fails   bool
	}{
		{name: "on from off", before: "0", action: On, verdict: Verified, writes: "power 1", after: "Chassis Power is on"},
		{name: "on from on", before: "1", action: On, verdict: Verified, after: "Chassis Power is on"},
		{name: "off from on", before: "1", action: Off, verdict: Verified, writes: "power 0", after: "Chassis Power is off"},
		{name: "off from off", before: "0", action: Off, verdict: Verified, after: "Chassis Power is off"},
		{name: "soft off", before: "1", action: SoftOff, verdict: Verified, writes: "shutdown 1", after: "Chassis Power is off"},
		{name: "cycle from on", before: "1", action: Cycle, verdict: Verified, writes: "power 0, power 1", after: "Chassis Power is on"},
		{name: "cycle from off", before: "0", action: Cycle, verdict: Verified, writes: "power 1", after: "Chassis Power is on"},
		{name: "reset from on", before: "1", action: Reset, verdict: Unverifiable, writes: "reset 1", after: "Chassis Power is on"},
		{name: "reset from off", before: "0", action: Reset, after: "Chassis Power is off", fails: true, kind: errkind.Refused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startSim(t)
			s.Put("power", tt.before+"\n")
			out, err := open(t, s.target()).SetPower(t.Context(), tt.action)
			if (err != nil) != tt.fails || tt.fails && errkind.Of(err) != tt.kind {
				t.Fatalf("err = %v, want fails=%t kind=%s", err, tt.fails, tt.kind)
			}
			wantSent := 0
			if tt.writes != "" {
				wantSent = strings.Count(tt.writes, ",") + 1
			}
			if out.Verdict != tt.verdict || out.Sent != wantSent {
				t.Errorf("outcome = %+v, want %s with %d sent", out, tt.verdict, wantSent)
			}
			if got := s.Did(); got != tt.writes {
				t.Errorf("the bmc carried out %q, want %q", got, tt.writes)
			}
			if got := s.ipmitool("chassis", "power", "status"); got != tt.after {
				t.Errorf("ipmitool says %q, want %q", got, tt.after)
			}
		})
	}
}

// A power supply that ignores the command is a contradiction, not a success and
// not an endless wait.
func TestPeerPowerContradicted(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	s.Put("stuck", "")
	session, err := Open(t.Context(), s.target(), Options{Clock: newSkipClock()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := session.SetPower(t.Context(), On)
	if err != nil || out.Verdict != Contradicted || out.Sent != 1 || !strings.Contains(out.Evidence, "still reads off") {
		t.Errorf("got %+v, %v", out, err)
	}
	if got := s.Did(); got != "power 1" {
		t.Errorf("the bmc carried out %q", got)
	}
}

// An answer that comes too late: the command is not repeated, what it did is
// read back.
func TestPeerPowerLostAnswer(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	s.Put("slow", "4")
	out, err := open(t, s.target()).SetPower(t.Context(), On) // it waits for 3 s
	if err != nil || out.Verdict != Verified || out.Sent != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
	if !strings.Contains(out.Evidence, "not answered") {
		t.Errorf("evidence %q hides the lost answer", out.Evidence)
	}
	if got := s.Did(); got != "power 1" {
		t.Errorf("the bmc carried out %q, want one command", got)
	}
}

func TestPeerSetBoot(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		boot    Boot
		keep    bool // the BMC accepts and keeps its own setting
		verdict Verdict
		writes  string
		kind    errkind.Kind
		fails   bool
	}{
		{name: "pxe once", boot: Boot{Device: PXE, Once: true}, verdict: Verified, writes: "boot pxe"},
		{name: "pxe once uefi", boot: Boot{Device: PXE, Once: true, UEFI: true}, verdict: Verified, writes: "boot pxe"},
		{name: "disk", boot: Boot{Device: Disk}, verdict: Verified, writes: "boot default"},
		{name: "none", boot: Boot{}, verdict: Verified, writes: "boot none"},
		{name: "not kept", boot: Boot{Device: PXE, Once: true}, keep: true, verdict: Unverifiable, writes: "boot pxe"},
		{name: "http", boot: Boot{Device: HTTP, Once: true, UEFI: true}, fails: true, kind: errkind.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startSim(t)
			if tt.keep {
				s.Put("keepboot", "")
			}
			out, err := open(t, s.target()).SetBoot(t.Context(), tt.boot)
			if (err != nil) != tt.fails || tt.fails && errkind.Of(err) != tt.kind {
				t.Fatalf("err = %v, want fails=%t kind=%s", err, tt.fails, tt.kind)
			}
			if out.Verdict != tt.verdict {
				t.Errorf("outcome = %+v, want %s", out, tt.verdict)
			}
			if got := s.Did(); got != tt.writes {
				t.Errorf("the bmc carried out %q, want %q", got, tt.writes)
			}
		})
	}
}

func TestPeerIdentity(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	id, err := open(t, s.target()).Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Identity{
		Manufacturer: 0x1291, Product: 0x0f02, Firmware: Firmware{Major: 9, Minor: 8},
		GUID:          GUID{0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff},
		ProductSerial: "SYS-n1-0001", BoardSerial: "BRD-SYS-n1-0001", ProductName: "lab-node",
	}
	if fmt.Sprint(id) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", id, want)
	}
	if order, ok := id.GUID.Match("00112233-4455-6677-8899-AABBCCDDEEFF"); !ok || order != "smbios" {
		t.Errorf("guid %s matches %q, %t", id.GUID, order, ok)
	}
	judge := s.ipmitool("mc", "info")
	if !strings.Contains(judge, id.Firmware.String()) {
		t.Errorf("firmware %s, ipmitool says %s", id.Firmware, judge)
	}
	if id.Serial() != "SYS-n1-0001" {
		t.Errorf("serial %q", id.Serial())
	}
}

// Damaged FRU data is a gap, never a serial number.
func TestPeerIdentityDamagedFRU(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	image := ipmisim.FRU("SYS-n1-0001", "BRD-n1-0001")
	image[len(image)-20] ^= 0x55
	s.Put("fru.bin", string(image))
	s.Kill()
	s.Run()
	id, err := open(t, s.target()).Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if id.ProductSerial != "" || id.BoardSerial != "BRD-n1-0001" || len(id.Gaps) != 1 ||
		!strings.Contains(id.Gaps[0], "product area: checksum") {
		t.Errorf("got %+v", id)
	}
}

func TestPeerOpenErrors(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	with := func(change func(*Target)) Target {
		target := s.target()
		change(&target)
		return target
	}
	tests := []struct {
		name   string
		target Target
		kind   errkind.Kind
		text   string
	}{
		{"wrong password", with(func(t *Target) { t.Password = secret.NewValue(simPassword + "x") }), errkind.Auth, "wrong"},
		{"wrong user", with(func(t *Target) { t.Username = "nobody" }), errkind.Auth, "wrong"},
		{"suite 17 refused", with(func(t *Target) { t.CipherSuite = 17 }), errkind.Unsupported, "cipher suite"},
		{"suite 1", with(func(t *Target) { t.CipherSuite = 1 }), errkind.Unsupported, "cipher suite 1"},
		{"dead address", with(func(t *Target) { t.Addr = freeUDP(s.t) }), errkind.Unreachable, "connection refused"},
		{"silent address", with(func(t *Target) {
			t.Addr, t.Timeout = silent.LocalAddr().(*net.UDPAddr).AddrPort(), 600*time.Millisecond
		}), errkind.Unreachable, "nothing answers"},
		{"no address", with(func(t *Target) { t.Addr = netip.AddrPort{} }), errkind.Invalid, "not complete"},
		{"long password", with(func(t *Target) { t.Password = secret.NewValue(simPassword + "xxxxxxxxx") }), errkind.Invalid, "longer"},
		{"long user", with(func(t *Target) { t.Username = "a-very-long-user-name" }), errkind.Invalid, "user name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			session, err := Open(t.Context(), tt.target, Options{}) // how long it takes: TestOpenOnNetwork
			if err == nil {
				_ = session.Close(t.Context())
				t.Fatal("opened")
			}
			if errkind.Of(err) != tt.kind || !strings.Contains(err.Error(), tt.text) || !strings.HasPrefix(err.Error(), "node n1: bmc ") {
				t.Errorf("kind %s, want %s; text %q, want %q in it", errkind.Of(err), tt.kind, err, tt.text)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("text has several lines: %q", err)
			}
			noCanary(t, err, errkind.Action(err), tt.target)
		})
	}
}

// Calls end with their context, also while the BMC is silent.
func TestPeerContext(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	s.Put("slow", "60")
	target := s.target()
	target.Timeout = time.Hour // it is the context that ends
	session := open(t, target)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	start := time.Now()
	out, err := session.SetPower(ctx, On)
	if errkind.Of(err) != errkind.Timeout || out.Sent != 1 || time.Since(start) > 5*time.Minute {
		t.Errorf("deadline: %+v, %v after %s", out, err, time.Since(start))
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("stopped"))
	if _, err := session.PowerState(stopped); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("cancelled: %v", err)
	}
}

// A user with OPERATOR privilege is enough for everything.
func TestPeerOperator(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	target := s.target()
	target.Username = "operator"
	session := open(t, target)
	if out, err := session.SetPower(t.Context(), On); err != nil || out.Verdict != Verified {
		t.Errorf("power: %+v, %v", out, err)
	}
	if out, err := session.SetBoot(t.Context(), Boot{Device: PXE, Once: true}); err != nil || out.Verdict != Verified {
		t.Errorf("boot: %+v, %v", out, err)
	}
	if _, err := session.Identity(t.Context()); err != nil {
		t.Errorf("identity: %v", err)
	}
}

func TestSupported(t *testing.T) {
	t.Parallel()
	for protocol, ok := range map[Protocol]bool{"": true, IPMI: true, Redfish: true, "amt": false} {
		err := Supported(protocol)
		if (err == nil) != ok || err != nil && (errkind.Of(err) != errkind.Unsupported || errkind.Action(err) == "") {
			t.Errorf("Supported(%q) = %v", protocol, err)
		}
	}
}
