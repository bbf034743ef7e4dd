// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/provision/netboot"
)

// TestBoards: the boot services on a network without sockets of their own, and on
// translated ones. A node behind a relay gets an answer of each of them, at its
// site address and at the well-known ports.
func TestBoards(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { onBoard(t, network.NewMemory()) })
	})
	t.Run("loopback", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("only Linux has all of 127.0.0.0/8")
		}
		onBoard(t, network.NewLoopback())
	})
}

func onBoard(t *testing.T, b network.Board) {
	src, ctl := newOne(t), netip.MustParseAddr("10.99.0.2")
	node := b.At(src.client.Address.Addr())
	cfg := netboot.Config{Network: b.At(ctl), Interface: "boot0", Address: ctl, LoaderDir: t.TempDir(), Relays: []netip.Addr{netip.MustParseAddr("10.99.0.1")}}
	if err := os.WriteFile(filepath.Join(cfg.LoaderDir, "snponly.efi"), []byte("MZ loader"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := netboot.Open(t.Context(), cfg, src, newDiary())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	if s.Root() != "http://10.99.0.2:80" {
		t.Errorf("root is %s", s.Root())
	}
	askRelayed(t, b)
	askHTTP(t, node, s.Root()+"/loader/snponly.efi", http.StatusOK)
	askHTTP(t, b.At(netip.MustParseAddr("10.99.0.77")), s.Root()+"/loader/snponly.efi", http.StatusForbidden)
	askTFTP(t, node)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	cfg.RouterAdvertisement = netboot.EmptyRA
	if _, err := netboot.Open(t.Context(), cfg, src, newDiary()); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("router advertisements: %v", err)
	}
}

// askRelayed sends a DISCOVER through a relay.
func askRelayed(t *testing.T, b network.Board) {
	t.Helper()
	at := netip.MustParseAddr("10.99.0.1")
	relay, err := b.At(at).ListenPacket(t.Context(), "udp4", ":67")
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	mac, _ := net.ParseMAC(nodeMAC)
	p, err := dhcpv4.NewDiscovery(mac, dhcpv4.WithGatewayIP(at.AsSlice()), dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000")),
		dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 7}))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = relay.WriteTo(p.ToBytes(), &net.UDPAddr{IP: net.IP{10, 99, 0, 2}, Port: 67})
	buf := make([]byte, 2048)
	_ = relay.SetReadDeadline(time.Now().Add(patience))
	n, from, err := relay.ReadFrom(buf)
	if err != nil || from.String() != "10.99.0.2:67" {
		t.Fatalf("from %v: %v", from, err)
	}
	if r, err := dhcpv4.FromBytes(buf[:n]); err != nil || r.MessageType() != dhcpv4.MessageTypeOffer || r.YourIPAddr.String() != "10.99.0.11" {
		t.Errorf("%v %v", r, err)
	}
}

func askHTTP(t *testing.T, from network.Network, url string, want int) {
	t.Helper()
	tr := &http.Transport{DialContext: from.Dial, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want || want == http.StatusOK && string(got) != "MZ loader" {
		t.Errorf("%s: %s %q %v, want %d", url, resp.Status, got, err, want)
	}
}

func askTFTP(t *testing.T, node network.Network) {
	t.Helper()
	p, err := node.ListenPacket(t.Context(), "udp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, _ = p.WriteTo([]byte("\x00\x01snponly.efi\x00octet\x00"), &net.UDPAddr{IP: net.IP{10, 99, 0, 2}, Port: 69})
	buf := make([]byte, 600)
	_ = p.SetReadDeadline(time.Now().Add(patience))
	n, from, err := p.ReadFrom(buf)
	if err != nil || string(buf[:n]) != "\x00\x03\x00\x01MZ loader" {
		t.Fatalf("%q %v", buf[:n], err)
	}
	_, _ = p.WriteTo([]byte{0, 4, 0, 1}, from)
}
