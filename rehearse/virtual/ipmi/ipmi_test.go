// SPDX-License-Identifier: Apache-2.0

package ipmi_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/ipmi"
)

const (
	user     = "admin"
	password = "correct-horse-9"
	uuid     = "4c4c4544-0042-3510-8052-b4c04f4d3132"
)

// hardware is a chassis whose transitions take no time worth waiting for.
func hardware(change func(*chassis.Config)) *chassis.Chassis {
	cfg := chassis.Config{
		Node: "n1", Manufacturer: "Supermicro", Product: "SYS-821GE-TNHR", Serial: "S-1001", UUID: uuid,
		BoardSerial: "B-1001", ChassisSerial: "C-1001",
		Timing:     chassis.Timing{PowerOn: time.Millisecond, PowerOff: time.Millisecond, POST: time.Millisecond, GracefulOff: time.Millisecond, BMCReset: time.Millisecond},
		Components: []chassis.Component{{ID: "BMC", Name: "BMC", Version: "01.13.06"}},
		Accounts: []chassis.Account{
			{ID: 2, Username: user, Password: password, Role: "Administrator", Enabled: true},
			{ID: 3, Username: "operator", Password: password, Role: "Operator", Enabled: true},
			{ID: 4, Username: "guest", Password: password, Role: "ReadOnly", Enabled: true},
			{ID: 5, Username: "left", Password: password, Role: "Administrator"},
		},
	}
	if change != nil {
		change(&cfg)
	}
	return chassis.New(cfg)
}

// serve runs a chassis and its BMC on a loopback socket.
func serve(t *testing.T, c *chassis.Chassis, o ipmi.Options) netip.AddrPort {
	t.Helper()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- ipmi.Serve(ctx, pc, c, o) }()
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("served: %v", err)
			}
		}
	})
	return pc.LocalAddr().(*net.UDPAddr).AddrPort()
}

// tool asks the independent judge; it fails the test when ok is not how it ends.
func tool(t *testing.T, at netip.AddrPort, suite string, ok bool, args ...string) string {
	t.Helper()
	return toolAs(t, at, suite, user, ok, args...)
}

func toolAs(t *testing.T, at netip.AddrPort, suite, name string, ok bool, args ...string) string {
	t.Helper()
	peertest.Need(t, "ipmitool")
	_, port, _ := net.SplitHostPort(at.String())
	all := append([]string{"-I", "lanplus", "-H", at.Addr().String(), "-p", port, "-U", name, "-E"}, args...)
	if ok { // its own second a try is too short for a busy machine
		all = append([]string{"-N", "20"}, all...)
	}
	if suite != "" { // else the tool asks which there are
		all = append([]string{"-C", suite}, all...)
	}
	cmd := exec.CommandContext(t.Context(), "ipmitool", all...)
	cmd.Env = append(os.Environ(), "IPMI_PASSWORD="+password)
	out, err := cmd.CombinedOutput()
	if (err == nil) != ok {
		t.Fatalf("ipmitool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

// TestPeerTool lets ipmitool judge, with both cipher suites.
func TestPeerTool(t *testing.T) {
	t.Parallel()
	for _, suite := range []string{"3", "17"} {
		t.Run("suite "+suite, func(t *testing.T) {
			t.Parallel()
			c := hardware(nil)
			at := serve(t, c, ipmi.Options{})
			contains(t, tool(t, at, suite, true, "mc", "info"), "10876", "1.13", "2.0")
			tool(t, at, "", true, "chassis", "power", "status")
			contains(t, tool(t, at, suite, true, "mc", "guid"), uuid)
			contains(t, tool(t, at, suite, true, "chassis", "power", "status"), "is off")
			contains(t, tool(t, at, suite, true, "chassis", "power", "on"), "Up/On")
			until(t, c, chassis.On)
			contains(t, tool(t, at, suite, true, "chassis", "status"), "System Power         : on", "always-off")
			contains(t, tool(t, at, suite, true, "fru", "print", "0"), "S-1001", "B-1001", "C-1001", "SYS-821GE-TNHR")
			contains(t, tool(t, at, suite, true, "sdr", "list"), "Inlet Temp       | 23 degrees C", "Fan1             | 5400 RPM", "400 Watts")
			contains(t, tool(t, at, suite, true, "sel", "list"), "Power Unit")
			tool(t, at, suite, true, "sel", "clear")
			contains(t, tool(t, at, suite, true, "sel", "list"), "Log area reset/cleared")
			tool(t, at, suite, true, "chassis", "identify", "30")
			contains(t, tool(t, at, suite, true, "raw", "0x00", "0x01"), "01 00 50") // on, light blinks for a while
			tool(t, at, suite, true, "chassis", "bootdev", "pxe", "options=efiboot,persistent")
			contains(t, tool(t, at, suite, true, "chassis", "bootparam", "get", "5"), "Force PXE", "all future boots", "EFI")
			if o := c.Override(); o != (chassis.Override{Enabled: "Continuous", Target: chassis.BootPXE, UEFI: true}) {
				t.Errorf("override %+v", o)
			}
			tool(t, at, suite, true, "chassis", "bootdev", "none")
			contains(t, tool(t, at, suite, true, "chassis", "bootparam", "get", "5"), "No override")
			tool(t, at, suite, true, "chassis", "power", "off")
			until(t, c, chassis.Off)
			tool(t, at, suite, false, "chassis", "power", "reset") // D5h: off
			tool(t, at, suite, true, "chassis", "policy", "always-on")
			if p := c.RestorePolicy(); p != chassis.AlwaysOn {
				t.Errorf("policy %s", p)
			}
		})
	}
}

// until waits for a transition of a millisecond.
func until(t *testing.T, c *chassis.Chassis, p chassis.Power) {
	t.Helper()
	for range 5000 {
		if c.Power() == p {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("power is %s, want %s", c.Power(), p)
}

// TestPeerRefusals: privileges, accounts and lock-out.
func TestPeerRefusals(t *testing.T) {
	t.Parallel()
	c := hardware(func(cfg *chassis.Config) { cfg.LockAfter = 2 })
	at := serve(t, c, ipmi.Options{CountAbandoned: true})
	toolAs(t, at, "17", "guest", true, "-L", "USER", "chassis", "power", "status")
	toolAs(t, at, "17", "guest", false, "-L", "USER", "chassis", "power", "on")
	toolAs(t, at, "17", "guest", false, "-L", "OPERATOR", "chassis", "power", "status")
	toolAs(t, at, "17", "operator", true, "-L", "OPERATOR", "chassis", "power", "on")
	toolAs(t, at, "17", "operator", false, "-L", "ADMINISTRATOR", "chassis", "power", "status")
	toolAs(t, at, "17", "left", false, "chassis", "power", "status")
	toolAs(t, at, "17", "", false, "chassis", "power", "status")
	for range 3 { // the third finds that two were given up
		toolWrong(t, at)
	}
	if !c.Locked(user) {
		t.Fatal("two wrong passwords did not lock the account")
	}
	tool(t, at, "17", false, "chassis", "power", "status")
}

func toolWrong(t *testing.T, at netip.AddrPort) {
	t.Helper()
	_, port, _ := net.SplitHostPort(at.String())
	cmd := exec.CommandContext(t.Context(), "ipmitool", "-I", "lanplus", "-C", "17", "-R", "1", "-N", "1", "-H", at.Addr().String(), "-p", port, "-U", user, "-E", "chassis", "power", "status")
	cmd.Env = append(os.Environ(), "IPMI_PASSWORD=wrong")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("a wrong password was taken: %s", out)
	}
}

func session(t *testing.T, at netip.AddrPort, change func(*bmc.Target)) (*bmc.Session, error) {
	t.Helper()
	target := bmc.Target{Node: "n1", Addr: at, Username: user, Password: secret.NewValue(password), Timeout: 30 * time.Second}
	if change != nil {
		change(&target)
	}
	s, err := bmc.Open(t.Context(), target, bmc.Options{})
	if err == nil {
		t.Cleanup(func() { _ = s.Close(context.Background()) })
	}
	return s, err
}

// TestClient lets our own client judge.
func TestClient(t *testing.T) {
	t.Parallel()
	c := hardware(nil)
	at := serve(t, c, ipmi.Options{})
	s, err := session(t, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Identity(t.Context())
	if _, same := id.GUID.Match(uuid); err != nil || !same || id.Serial() != "S-1001" || id.BoardSerial != "B-1001" || id.ChassisSerial != "C-1001" ||
		id.Manufacturer != 10876 || id.Firmware.String() != "1.13" || len(id.Gaps) > 0 {
		t.Errorf("identity %+v, %v", id, err)
	}
	for _, b := range []bmc.Boot{{Device: bmc.PXE, Once: true, UEFI: true}, {Device: bmc.Disk, UEFI: true}, {Device: bmc.Disk}, {}} {
		if out, err := s.SetBoot(t.Context(), b); err != nil || out.Verdict != bmc.Verified {
			t.Errorf("boot %+v: %+v, %v", b, out, err)
		}
	}
	if out, err := s.SetPower(t.Context(), bmc.On); err != nil || out.Verdict != bmc.Verified {
		t.Errorf("on: %+v, %v", out, err)
	}
}

// TestClientRefusals: what a client is told, and a BMC without mains is silent.
func TestClientRefusals(t *testing.T) {
	t.Parallel()
	c := hardware(nil)
	at := serve(t, c, ipmi.Options{Suites: []uint8{17}, Sessions: 1})
	for name, tt := range map[string]struct {
		change func(*bmc.Target)
		kind   errkind.Kind
	}{
		"password":  {func(t *bmc.Target) { t.Password = secret.NewValue("no") }, errkind.Auth},
		"user":      {func(t *bmc.Target) { t.Username = "nobody" }, errkind.Auth},
		"disabled":  {func(t *bmc.Target) { t.Username = "left" }, errkind.Auth},
		"privilege": {func(t *bmc.Target) { t.Username = "guest" }, errkind.Refused},
		"suite":     {func(t *bmc.Target) { t.CipherSuite = 3 }, errkind.Unsupported},
	} {
		if _, err := session(t, at, tt.change); err == nil || errkind.Of(err) != tt.kind {
			t.Errorf("%s: %v, want kind %s", name, err, tt.kind)
		}
	}
	if _, err := session(t, at, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := session(t, at, nil); err == nil {
		t.Error("a second session was opened where one is the limit")
	}
	c.Mains(0, false)
	c.Mains(1, false)
	_, err := session(t, at, func(t *bmc.Target) { t.Timeout = 200 * time.Millisecond })
	if errkind.Of(err) != errkind.Unreachable {
		t.Errorf("without mains: %v", err)
	}
}

// TestVirtualTime: our client on a BMC in memory, on virtual time: transitions
// take what the chassis takes, a slow BMC is waited for, and a node that loses its
// mains is silent until its BMC has started.
func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		at := netip.MustParseAddrPort("10.77.1.11:623")
		c := hardware(func(cfg *chassis.Config) { cfg.Timing = chassis.Timing{} })
		ctx, cancel := context.WithCancel(t.Context())
		pc, err := m.At(at.Addr()).ListenPacket(ctx, "udp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = c.Run(ctx) })
		wg.Go(func() { _ = ipmi.Serve(ctx, pc, c, ipmi.Options{Delay: 300 * time.Millisecond}) })
		defer wg.Wait()
		defer cancel()
		target := bmc.Target{Node: "n1", Addr: at, Username: user, Password: secret.NewValue(password), Timeout: 5 * time.Second}
		opts := bmc.Options{Network: m.At(netip.MustParseAddr("10.77.0.2"))}
		s, err := bmc.Open(ctx, target, opts)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if out, err := s.SetPower(ctx, bmc.On); err != nil || out.Verdict != bmc.Verified {
			t.Errorf("on: %+v, %v", out, err)
		}
		if took := time.Since(began); took < 5*time.Second || took > time.Minute {
			t.Errorf("on took %v", took)
		}
		c.LoseWrites("boot")
		if out, _ := s.SetBoot(ctx, bmc.Boot{Device: bmc.PXE, Once: true}); out.Verdict != bmc.Contradicted {
			t.Errorf("lost flags: %+v", out)
		}
		c.Mains(0, false)
		c.Mains(1, false)
		if _, err := s.PowerState(ctx); err == nil {
			t.Error("answers without mains")
		}
		c.Mains(0, true)
		time.Sleep(50 * time.Second)
		if _, err := s.PowerState(ctx); err == nil {
			t.Error("answers while it starts")
		}
		time.Sleep(20 * time.Second)
		if p, err := s.PowerState(ctx); err != nil || p != bmc.PowerOff {
			t.Errorf("power %v, %v", p, err)
		}
	})
}
