// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"context"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// chains is how many programs may load one another before a person is needed.
const chains = 3

// netboot boots one NIC: the firmware's own program loads iPXE, or shim with
// arm64 and with Secure Boot, which loads the rest.
func (b *Board) netboot(ctx context.Context, mac addr.MAC, how inventory.Firmware) result {
	b.printf("Booting from the network: %s, %s", how, mac)
	p := romProgram(how, b.cfg.Arch)
	l, err := b.acquire(ctx, mac, p)
	if err != nil {
		b.complain(ctx, "%s", p.describeError(err))
		return result{}
	}
	b.printf("%s: %s from %s", l.address, l.file, l.server)
	b.cfg.Chassis.SetPhase("BootLoader")
	if err := b.loader(ctx, l, how); err != nil {
		return result{}
	}
	if b.cfg.SecureBoot && !strings.Contains(path.Base(l.file), "shim") {
		b.printf("BdsDxe: failed to load Boot0001 \"UEFI PXEv4\" from %s: Access Denied", l.file)
		return result{}
	}
	if b.cfg.Arch == inventory.ARM64 || b.cfg.SecureBoot {
		r, err := b.shim(ctx, mac, l, how)
		if err != nil {
			b.complain(ctx, "%v", err)
		}
		return r
	}
	for range chains {
		next, r, err := b.ipxe(ctx, mac, how)
		switch {
		case err != nil:
			b.complain(ctx, "%v", err)
			return result{}
		case next == nil:
			return r
		}
		if b.loader(ctx, *next, inventory.BootBIOS) != nil { // iPXE takes it by TFTP
			return result{}
		}
	}
	b.printf("The loaders load one another: giving up")
	return result{}
}

// loader fetches the first program, by TFTP or HTTP.
func (b *Board) loader(ctx context.Context, l lease, how inventory.Firmware) error {
	n := b.cfg.Net(l.address.Addr())
	var size int64
	var err error
	switch {
	case how == inventory.BootUEFIHTTP:
		if size, err = httpLoader(ctx, n, l.file); err != nil {
			b.complain(ctx, "Error: could not retrieve the loader from %s: %v", l.file, err)
		}
	case how == inventory.BootUEFI:
		if size, err = loadFile(ctx, n, l.address.Addr(), l.server, l.file, maxBlock, 4); err != nil {
			b.complain(ctx, "PXE-E18: %s: %v", l.file, err)
		}
	default:
		if size, err = loadFile(ctx, n, l.address.Addr(), l.server, l.file, 1456, 1); err != nil {
			b.complain(ctx, "PXE-E32: %s: %v", l.file, err)
		}
	}
	if err == nil {
		b.printf("NBP file downloaded: %s, %d bytes", l.file, size)
	}
	return err
}

// httpLoader is UEFI's HTTP boot: HEAD for the size, then GET (UEFI 2.10, 24.7.6).
func httpLoader(ctx context.Context, n network.Network, url string) (int64, error) {
	const agent = "UefiHttpBoot/1.0"
	size, _, err := fetchURL(ctx, n, http.MethodHead, url, agent, io.Discard)
	if err != nil {
		return 0, err
	}
	_, got, err := fetchURL(ctx, n, http.MethodGet, url, agent, io.Discard)
	if err == nil && size >= 0 && got != size {
		err = io.ErrUnexpectedEOF
	}
	return got, err
}

// maxScript is how long a boot script may be.
const maxScript = 64 << 10

// ipxe is the program that was loaded: DHCP once more, the script, and what it
// says. next is a loader that it is told to load instead.
func (b *Board) ipxe(ctx context.Context, mac addr.MAC, how inventory.Firmware) (next *lease, r result, err error) {
	b.printf("iPXE 1.0.0+ -- Open Source Network Boot Firmware")
	p := ipxeProgram(how)
	l, err := b.acquire(ctx, mac, p)
	if err != nil {
		b.complain(ctx, "%s", p.describeError(err))
		return nil, r, nil
	}
	if !strings.Contains(l.file, "://") {
		return &l, r, nil
	}
	b.printf("Filename: %s", l.file)
	s := &shell{b: b, mac: mac, how: how, address: l.address, net: b.cfg.Net(l.address.Addr())}
	var text limited
	if _, _, err := fetchURL(ctx, s.net, http.MethodGet, l.file, agentIPXE, &text); err != nil {
		b.complain(ctx, "%s... %v", l.file, err)
		return nil, r, nil
	}
	r, err = s.run(ctx, text.b.String())
	return nil, r, err
}

// agentIPXE is how iPXE calls itself.
const agentIPXE = "iPXE/1.0.0+"

// limited keeps a script, and refuses what is too long for one.
type limited struct{ b strings.Builder }

// Write fails past maxScript.
func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxScript {
		return 0, io.ErrShortBuffer
	}
	return l.b.Write(p)
}

// hand gives the node to a kernel.
func (b *Board) hand(ctx context.Context, k Kernel) result {
	b.cfg.Chassis.SetPhase("OS")
	if b.cfg.Ramdisk == nil {
		return result{booted: true, exit: chassis.Halt}
	}
	return result{booted: true, exit: b.cfg.Ramdisk(ctx, k)}
}
