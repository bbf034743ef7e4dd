// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/hal"
	"github.com/bougou/go-ipmi/pkg/hal/mock"
	"github.com/bougou/go-ipmi/pkg/handlers"
	"github.com/bougou/go-ipmi/pkg/server"
	"github.com/bougou/go-ipmi/pkg/transport"
	"github.com/bougou/go-ipmi/pkg/transport/udp"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest/ipmisim"
	"github.com/ironrail/ironrail/internal/secret"
)

// hardware is what lies below go-ipmi's BMC; it records what is done to it.
type hardware struct {
	mock.Chassis
	mu    sync.Mutex
	on    bool
	calls []string
	busy  int // how often to answer "node busy" first
}

func (c *hardware) PowerState(context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.on, nil
}

func (c *hardware) SetPower(_ context.Context, on bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = on
	c.calls = append(c.calls, map[bool]string{true: "on", false: "off"}[on])
	return nil
}

func (c *hardware) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.calls, " ")
}

// board is a HAL with that chassis.
type board struct {
	*mock.HAL
	chassis *hardware
}

func (b board) Chassis() hal.ChassisHAL { return b.chassis }

// countConn counts the datagrams that reach the BMC.
type countConn struct {
	transport.PacketConn
	mu sync.Mutex
	n  int
}

func (c *countConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, addr, err := c.PacketConn.ReadFrom(b)
	if err == nil {
		c.mu.Lock()
		c.n++
		c.mu.Unlock()
	}
	return n, addr, err
}

func (c *countConn) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// startBMC runs go-ipmi's own BMC, which knows cipher suite 17.
func startBMC(t testing.TB, info bmc.DeviceInfo) (Target, *hardware, *countConn) {
	t.Helper()
	b := board{HAL: mock.New(), chassis: &hardware{}}
	if err := b.Storage().FRU().Write(t.Context(), 0, ipmisim.FRU("SYS-17", "BRD-17")); err != nil {
		t.Fatal(err)
	}
	state := bmc.New(info, [16]byte{1, 2, 3}, b)
	for id, user := range map[uint8]struct {
		name string
		priv bmc.PrivilegeLevel
	}{2: {simUser, bmc.PrivilegeLevelAdministrator}, 3: {"guest", bmc.PrivilegeLevelUser}} {
		u, err := state.Users.Add(id, user.name)
		if err != nil {
			t.Fatal(err)
		}
		u.SetPassword([]byte(simPassword))
		u.Enabled = true
		u.ChannelAccess[1] = bmc.UserChannelAccess{MaxPrivilege: user.priv, Enabled: true}
	}
	addr := freeUDP(t)
	conn, err := udp.Listen(addr.String(), udp.WithReadTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	counted := &countConn{PacketConn: conn}
	reg := handlers.NewRegistry()
	handlers.RegisterAppHandlers(reg)
	handlers.RegisterSessionHandlers(reg)
	handlers.RegisterChassisHandlers(reg)
	handlers.RegisterStorageHandlers(reg)
	registerBusy(reg, b.chassis)
	srv := server.NewServer(state, counted, server.WithHandlerRegistry(reg), server.WithCipherSuites([]types.CipherSuiteID{types.CipherSuiteID17}))
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() { _ = srv.Serve(ctx) })
	t.Cleanup(func() { cancel(); _ = srv.Close(); wg.Wait() })
	return Target{Node: "n17", Addr: addr, Username: simUser, Password: secret.NewValue(simPassword), Timeout: 30 * time.Second}, b.chassis, counted
}

// registerBusy puts "node busy" in front of Chassis Control.
func registerBusy(reg *handlers.Registry, c *hardware) {
	reg.RegisterFunc(types.CommandChassisControl, func(ctx context.Context, h *handlers.HandlerContext, req []byte) ([]byte, types.CompletionCode, error) {
		c.mu.Lock()
		busy := c.busy > 0
		c.busy--
		c.mu.Unlock()
		if busy {
			return nil, types.CodeNodeBusy, nil
		}
		return nil, types.CodeOK, c.SetPower(ctx, len(req) > 0 && req[0]&0x0f == 1)
	})
}

func TestSuite17(t *testing.T) {
	t.Parallel()
	target, chassis, _ := startBMC(t, bmc.DeviceInfo{ManufacturerID: 19046, ProductID: 7, FirmwareMajor: 4, FirmwareMinor: 0x21, IPMIVersion: 0x20})
	clk := newSkipClock()
	session, err := Open(t.Context(), target, Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(context.Background()) })
	id, err := session.Identity(t.Context())
	if err != nil || id.Serial() != "SYS-17" || id.Manufacturer != 19046 || id.Firmware.String() != "4.21" {
		t.Errorf("identity %+v, %v", id, err)
	}
	if out, err := session.SetPower(t.Context(), On); err != nil || out.Verdict != Verified {
		t.Errorf("on: %+v, %v", out, err)
	}
	before := clk.Now()
	if out, err := session.SetPower(t.Context(), Cycle); err != nil || out.Verdict != Verified || out.Sent != 2 {
		t.Errorf("cycle: %+v, %v", out, err)
	}
	if off := clk.Now().Sub(before); off < 10*time.Second {
		t.Errorf("the node was off for %s, this maker's quirk says 10 s", off)
	}
	if got := chassis.log(); got != "on off on" {
		t.Errorf("the bmc carried out %q", got)
	}
	for _, b := range []Boot{{Device: PXE, Once: true, UEFI: true}, {Device: Disk}, {}} {
		if out, err := session.SetBoot(t.Context(), b); err != nil || out.Verdict != Verified {
			t.Errorf("boot %+v: %+v, %v", b, out, err)
		}
	}
	if flags, err := session.drv.(*ipmiDriver).BootDeviceOverrideGet(t.Context()); err != nil || flags.Device != "none" {
		t.Errorf("override %+v, %v", flags, err)
	}
}

// "Node busy" says that nothing was done, so the command is repeated.
func TestBusy(t *testing.T) {
	t.Parallel()
	target, chassis, _ := startBMC(t, bmc.DeviceInfo{ManufacturerID: 1, ProductID: 7})
	chassis.mu.Lock()
	chassis.busy = 2
	chassis.mu.Unlock()
	session, err := Open(t.Context(), target, Options{Clock: newSkipClock()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := session.SetPower(t.Context(), On)
	if err != nil || out.Verdict != Verified || out.Sent != 3 || chassis.log() != "on" {
		t.Errorf("got %+v, %v; carried out %q", out, err, chassis.log())
	}
}

func TestSuite17Refusals(t *testing.T) {
	t.Parallel()
	target, _, _ := startBMC(t, bmc.DeviceInfo{})
	for name, tt := range map[string]struct {
		change func(*Target)
		kind   errkind.Kind
	}{
		"wrong password": {func(t *Target) { t.Password = secret.NewValue("no-" + simPassword) }, errkind.Auth},
		"privilege":      {func(t *Target) { t.Username = "guest" }, errkind.Refused},
		"suite 3":        {func(t *Target) { t.CipherSuite = 3 }, errkind.Unsupported},
	} {
		changed := target
		tt.change(&changed)
		_, err := Open(t.Context(), changed, Options{})
		if err == nil || errkind.Of(err) != tt.kind {
			t.Errorf("%s: %v, want kind %s", name, err, tt.kind)
		}
		noCanary(t, err)
	}
}
