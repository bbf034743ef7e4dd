// SPDX-License-Identifier: Apache-2.0

package vlanport

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const ends = "ddddddssssss"

// TestPort: a tagged member takes frames of its VLAN alone and tags what it sends; an untagged one
// takes frames without a tag.
func TestPort(t *testing.T) {
	t.Parallel()
	plain, own, other := ends+"\x08\x00payload", ends+"\x81\x00\x60\x1e\x08\x00payload", ends+"\x81\x00\x00\x1f\x08\x00payload"
	for _, c := range []struct {
		name    string
		p       Port
		in, out string // what becomes of a frame of the machine, and of the plain one to it
		frame   string
	}{
		{"its VLAN, with a priority", Port{30}, plain, ends + "\x81\x00\x00\x1e\x08\x00payload", own},
		{"another VLAN", Port{30}, "", ends + "\x81\x00\x00\x1e\x08\x00payload", other},
		{"no tag at a tagged member", Port{30}, "", ends + "\x81\x00\x00\x1e\x08\x00payload", plain},
		{"no tag", Port{}, plain, plain, plain},
		{"a tag at an untagged member", Port{}, "", plain, own},
		{"short", Port{30}, "", ends + "\x81\x00\x00\x1e\x08\x00payload", "ddd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := string(c.p.in([]byte(c.frame))); got != c.in {
				t.Errorf("in: %q, want %q", got, c.in)
			}
			if got := string(c.p.out([]byte(plain))); got != c.out {
				t.Errorf("out: %q, want %q", got, c.out)
			}
		})
	}
}

// TestServe: frames go both ways until the context ends.
func TestServe(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "port")
	kernel, side := net.Pipe()
	machine, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at + ".nic", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Port{30}.Serve(ctx, at, side) }()
	plain, tagged := []byte(ends+"\x08\x00payload"), []byte(ends+"\x81\x00\x00\x1e\x08\x00payload")
	machine.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := kernel.Write(plain); err != nil { // the port listens before it reads
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := machine.Read(b); err != nil || !bytes.Equal(b[:n], tagged) {
		t.Errorf("the machine gets %q, %v", b[:n], err)
	}
	if _, err := machine.WriteTo(tagged, &net.UnixAddr{Name: at, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	kernel.SetReadDeadline(time.Now().Add(30 * time.Second))
	if n, err := kernel.Read(b); err != nil || !bytes.Equal(b[:n], plain) {
		t.Errorf("the VLAN gets %q, %v", b[:n], err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := kernel.Write(plain); err != io.ErrClosedPipe {
		t.Errorf("the kernel's side is open: %v", err)
	}
	if args := strings.Join(Args("n0", at), " "); args != "-netdev dgram,id=n0,local.type=unix,local.path="+at+".nic,remote.type=unix,remote.path="+at {
		t.Error(args)
	}
}

// TestFirmware: a second variable comes behind the first; what is no store is refused.
func TestFirmware(t *testing.T) {
	t.Parallel()
	mac := net.HardwareAddr{0x52, 0x54, 0, 0x99, 0, 0x11}
	blank := append(make([]byte, firstVariable), bytes.Repeat([]byte{0xff}, 400)...)
	one, err := Firmware(blank, mac, 30)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Firmware(one, mac, 31)
	if err != nil {
		t.Fatal(err)
	}
	name := []byte("5\x002\x005\x004\x000\x000\x009\x009\x000\x000\x001\x001\x00\x00\x00")
	first, second := bytes.Index(two, append(bytes.Clone(name), 30, 0)), bytes.Index(two, append(bytes.Clone(name), 31, 0))
	if first < 0 || second < first || bytes.Contains(one, append(bytes.Clone(name), 31, 0)) || len(two) != len(blank) {
		t.Errorf("at %d and %d", first, second)
	}
	for _, bad := range [][]byte{nil, make([]byte, 400), blank[:firstVariable+60]} {
		if _, err := Firmware(bad, mac, 30); err == nil {
			t.Errorf("%d bytes were taken", len(bad))
		}
	}
}
