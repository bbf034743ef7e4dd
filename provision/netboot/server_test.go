// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/netboot"
)

// self is a loopback address that no other program uses, so that a port which is
// closed and opened again is not taken meanwhile.
var self = netip.AddrFrom4([4]byte{127, byte(192 + os.Getpid()>>8%32), byte(os.Getpid()), 2})

// free returns a port of self that is free for TCP and UDP.
func free(t *testing.T) uint16 {
	t.Helper()
	for range 50 {
		ln, err := net.Listen("tcp4", netip.AddrPortFrom(self, 0).String())
		if err != nil {
			t.Fatal(err)
		}
		port := ln.Addr().(*net.TCPAddr).AddrPort().Port()
		ln.Close()
		if c, err := net.ListenPacket("udp4", ln.Addr().String()); err == nil {
			c.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// local is a configuration that needs no root.
func local(t *testing.T) netboot.Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "snponly.efi"), []byte("MZ"), 0o600); err != nil {
		t.Fatal(err)
	}
	return netboot.Config{Address: self, HTTPPort: free(t), TFTPPort: free(t), DHCPPort: free(t), LoaderDir: dir}
}

func TestOpenRefuses(t *testing.T) {
	taken, err := net.Listen("tcp4", netip.AddrPortFrom(self, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := []struct {
		name string
		edit func(*netboot.Config)
		kind errkind.Kind
		want string
	}{
		{"no address", func(c *netboot.Config) { c.Address = netip.Addr{} }, errkind.Internal, "not IPv4"},
		{"IPv6", func(c *netboot.Config) { c.Address = netip.IPv6Loopback() }, errkind.Internal, "not IPv4"},
		{"unknown advertisement", func(c *netboot.Config) { c.RouterAdvertisement = "full" }, errkind.Unsupported, `"full"`},
		{"negative lease", func(c *netboot.Config) { c.Lease = -1 }, errkind.Internal, "lease"},
		{"no loaders", func(c *netboot.Config) { c.LoaderDir = t.TempDir() }, errkind.Unsupported, "no first-stage loader"},
		{"port taken", func(c *netboot.Config) { c.HTTPPort = taken.Addr().(*net.TCPAddr).AddrPort().Port() }, errkind.Refused, "HTTP: listen"},
		{"address of somebody else", func(c *netboot.Config) { c.Address = netip.MustParseAddr("192.0.2.1") }, errkind.Refused, "192.0.2.1"},
		{"no such interface", func(c *netboot.Config) { c.Interface = "none0" }, errkind.Unsupported, "none0"},
		{"bad mount", func(c *netboot.Config) { c.Mounts = []netboot.Mount{{Prefix: "x"}} }, errkind.Internal, `mount "x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := local(t)
			tt.edit(&cfg)
			_, err := netboot.Open(t.Context(), cfg, newOne(t), newDiary())
			if err == nil || errkind.Of(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v (%v), want %v with %q", err, errkind.Of(err), tt.kind, tt.want)
			}
			// What was opened before the error must be closed again.
			if cfg.Address.Is4() && cfg.Address.IsLoopback() && tt.name != "port taken" {
				ln, err := net.Listen("tcp4", netip.AddrPortFrom(cfg.Address, cfg.HTTPPort).String())
				if err != nil {
					t.Fatalf("a socket was left open: %v", err)
				}
				ln.Close()
			}
		})
	}
}

// TestServeStops: cancelled before and while it serves, Serve ends with nil and
// all ports are free again.
func TestServeStops(t *testing.T) {
	cfg := local(t)
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		s, err := netboot.Open(t.Context(), cfg, newOne(t), newDiary())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		if err := s.Serve(ctx); err != nil {
			t.Errorf("Serve: %v", err)
		}
		cancel()
	}
	s, err := netboot.Open(t.Context(), cfg, newOne(t), newDiary())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if want := "http://" + netip.AddrPortFrom(cfg.Address, cfg.HTTPPort).String(); s.Root() != want {
		t.Errorf("Root is %q, want %q", s.Root(), want)
	}
}
