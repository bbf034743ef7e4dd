// SPDX-License-Identifier: Apache-2.0

package rack_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rack"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// limit ends what hangs, and judges nothing.
const limit = time.Minute

// siteOf copies the files of an example into a folder of its own, and loads them.
func siteOf(t *testing.T, example string) *inventory.Inventory {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"site.hcl", "manifest.csv"} {
		b, err := os.ReadFile(filepath.Join("../../examples", example, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return load(t, dir)
}

func load(t *testing.T, dir string) *inventory.Inventory {
	t.Helper()
	inv, diags, _ := provision.Load(dir, inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return inv
}

// start starts the rack of a site; stop ends it.
func start(t *testing.T, inv *inventory.Inventory) (c *rack.Client, i rack.Info, stop func() error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan rack.Info, 1), make(chan error, 1)
	go func() {
		ended <- rack.Run(ctx, inv, rack.Options{Seed: 3, Speed: 600, OnReady: func(i rack.Info, _ []virtual.Endpoint) { ready <- i }})
	}()
	select {
	case i = <-ready:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(limit):
		t.Fatal("the rack is not up after a minute")
	}
	stop = func() error { cancel(); return <-ended }
	return rack.NewClient(inv.Dir), i, stop
}

// TestRack asks a rack what it is, and does what technicians do.
func TestRack(t *testing.T) {
	t.Parallel()
	inv := siteOf(t, "demo")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, err := rack.NewClient(inv.Dir).Info(ctx); errkind.Of(err) != errkind.Unreachable || !strings.Contains(err.Error(), "no virtual rack runs") {
		t.Errorf("before it runs: %v", err)
	}
	c, want, stop := start(t, inv)
	if i, err := c.Info(ctx); err != nil || i.Site != "demo" || i.Nodes != 8 || i.PID != os.Getpid() || len(i.Places) != len(want.Places) {
		t.Errorf("%+v, %v", i, err)
	}
	doors, err := c.Endpoints(ctx)
	if err != nil || len(doors) != 12 {
		t.Errorf("%d devices: %v", len(doors), err)
	}
	for _, d := range doors {
		if !d.Real.Addr().IsLoopback() || d.Real.Port() < 1024 || d.Password == "" {
			t.Errorf("%+v", d)
		}
	}
	if err := rack.Run(ctx, load(t, inv.Dir), rack.Options{}); errkind.Of(err) != errkind.Refused {
		t.Errorf("a second rack of the folder: %v", err)
	}
	for _, tt := range []struct {
		name string
		do   func() error
		want errkind.Kind
	}{
		{"a chassis of no node", func() error { _, err := c.Replace(ctx, "n1"); return err }, errkind.NotFound},
		{"a chassis", func() error {
			label, err := c.Replace(ctx, "r01-u01")
			if err == nil && (label.Serial == "" || label.Serial == inv.Nodes[0].Serial || label.BootMAC == inv.Nodes[0].BootMAC) {
				t.Errorf("the chassis is %+v", label)
			}
			return err
		}, 0},
		{"a swap with no node", func() error { return c.Exchange(ctx, "r01-u01", "n1") }, errkind.NotFound},
		{"a swap", func() error { return c.Exchange(ctx, "r01-u01", "r01-u09") }, 0},
		{"no fault", func() error { return c.Plant(ctx, "kind=rust") }, errkind.Invalid},
		{"a fault of no node", func() error { return c.Plant(ctx, "kind=bmc-dead,node=n1") }, errkind.Invalid},
		{"a fault at a step", func() error { return c.Plant(ctx, "kind=bmc-dead,node=r01-u01,at=install.write") }, errkind.Unsupported},
		{"a fault later", func() error { return c.Plant(ctx, "kind=link-down,node=r01-u01,port=rail/1,after=5m") }, errkind.Unsupported},
		{"the death of a controller", func() error { return c.Plant(ctx, "kind=controller-kill") }, errkind.Unsupported},
		{"a lost repository", func() error { return c.Plant(ctx, "kind=repo-gone") }, errkind.Unsupported},
		{"a fault", func() error { return c.Plant(ctx, "kind=link-down,node=r01-u01,port=rail/1") }, 0},
		{"its end", func() error { return c.Lift(ctx, "kind=link-down,node=r01-u01,port=rail/1") }, 0},
	} {
		if err := tt.do(); (err == nil) != (tt.want == 0) || err != nil && errkind.Of(err) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := c.Info(ctx); errkind.Of(err) != errkind.Unreachable {
		t.Errorf("after it ended: %v", err)
	}
}

// TestRackIsAllThereIs: the network of a site on the rack has the rack's devices and
// nothing else, not even other addresses of this machine.
func TestRackIsAllThereIs(t *testing.T) {
	t.Parallel()
	inv := siteOf(t, "demo")
	_, i, stop := start(t, inv)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	n := network.JoinLoopback(i.Places).At(i.Controller)
	c, err := n.Dial(ctx, "tcp", "10.10.0.65:443")
	if err != nil {
		t.Fatal(err)
	}
	if c.RemoteAddr().String() != "10.10.0.65:443" || !strings.HasPrefix(c.LocalAddr().String(), "10.20.0.2:") {
		t.Errorf("%s to %s", c.LocalAddr(), c.RemoteAddr())
	}
	_ = c.Close()
	for _, kind := range []string{"tcp", "udp"} {
		for _, at := range []string{"10.9.9.9:443", "192.0.2.1:443", "127.0.0.1:22", "[::1]:22"} {
			c, err := n.Dial(ctx, kind, at)
			if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "no address of the virtual rack") {
				t.Errorf("%s %s: %v, %v", kind, at, c, err)
			}
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestPins: digests that the files pinned when the rack was started are taken off, and
// others stay.
func TestPins(t *testing.T) {
	t.Parallel()
	inv := siteOf(t, "demo")
	const pinned, edited = "sha256:1111111111111111111111111111111111111111111111111111111111111111", "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	inv.Images[0].Digest = pinned
	c, _, stop := start(t, inv)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for _, tt := range []struct{ digest, want string }{{pinned, ""}, {edited, edited}, {"", ""}} {
		now := load(t, inv.Dir)
		now.Images[0].Digest = tt.digest
		s, err := c.Open(ctx, now, false)
		if err != nil {
			t.Fatal(err)
		}
		digests, err := s.Artifacts.Digests()
		if got := digests[now.Images[0].Name]; err != nil || now.Images[0].Digest != tt.want || got == "" || got == pinned {
			t.Errorf("%q: the files say %q, and nodes get %q: %v", tt.digest, now.Images[0].Digest, got, err)
		}
	}
	other := load(t, inv.Dir)
	other.Site.Name = "other"
	if _, err := c.Open(ctx, other, true); errkind.Of(err) != errkind.Refused {
		t.Errorf("another site: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestSubnetManager: the host of an InfiniBand fabric's subnet manager is the rack's, with
// its files, programs and log.
func TestSubnetManager(t *testing.T) {
	t.Parallel()
	inv := siteOf(t, "h100-su")
	slices.SortFunc(inv.Nodes, func(a, b *inventory.Node) int { return strings.Compare(a.Name, b.Name) })
	c, _, stop := start(t, inv)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	h := rack.SubnetHost(c, inv.Fabrics[0].Name)
	if _, err := h.Read(ctx, "/etc/opensm/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	const path, text = "/etc/opensm/partitions.conf", "Default=0x7fff,ipoib:ALL=full;\n"
	if err := h.Write(ctx, path, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Read(ctx, path); err != nil || string(got) != text {
		t.Errorf("%q, %v", got, err)
	}
	if err := h.Reload(ctx, false); err != nil {
		t.Error(err)
	}
	if out, err := h.Run(ctx, "ibnetdiscover"); err != nil || out.Exit != 0 || !strings.Contains(string(out.Stdout), "Topology file") {
		t.Errorf("%+v, %v", out, err)
	}
	if log, end, err := h.Log(ctx, 0); err != nil || len(log) == 0 || end == 0 {
		t.Errorf("%q up to %d, %v", log, end, err)
	}
	if _, err := rack.SubnetHost(c, "none").Run(ctx, "sminfo"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a fabric without one: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestTooLarge: sites of more nodes than a machine has addresses and sockets for are
// refused, and faults that a rack cannot plant.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	inv := siteOf(t, "demo")
	err := rack.Run(t.Context(), inv, rack.Options{Faults: []fault.Fault{{Kind: fault.ControllerKill}}})
	if err == nil {
		t.Error("it is to see the death of its controller")
	}
	for len(inv.Nodes) <= 128 {
		inv.Nodes = append(inv.Nodes, inv.Nodes[0])
	}
	if err := rack.Run(t.Context(), inv, rack.Options{}); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(inv.Dir, rack.Folder)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
}

// TestAddressTaken: a rack that cannot have one of its addresses closes those that it had, so that the
// next one in the same block has them.
func TestAddressTaken(t *testing.T) {
	t.Parallel()
	inv := siteOf(t, "demo")
	const block = 199 // of no rack
	var pdu netip.Addr
	for _, r := range inv.Racks {
		for _, p := range r.PDUs {
			if p.Control != nil {
				pdu = p.Control.Address // the last that is opened
			}
		}
	}
	end, places, err := rack.OpenIn(t.Context(), inv, block)
	if err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	taken, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(places[pdu], network.LowPorts+161)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := rack.OpenIn(t.Context(), inv, block); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("an address that is taken: %v", err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if end, _, err = rack.OpenIn(t.Context(), inv, block); err != nil {
		t.Fatalf("the next rack: %v", err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
