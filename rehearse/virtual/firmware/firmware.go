// SPDX-License-Identifier: Apache-2.0

// Package firmware is what the mainboard of a virtual node does while it has
// power: the self test, the boot order, network boot as PXE ROMs, UEFI, iPXE, and
// with arm64 and Secure Boot shim and GRUB do it (DHCP through a relay, TFTP, HTTP, the boot script),
// and the start of the install ramdisk or of the disk. It speaks with the real boot
// services and believes none of their words without looking.
//
// MokManager, which shim starts for a certificate that is to be enrolled, is answered at the serial
// console. It does not model option ROMs by maker, IPv6, ProxyDHCP, DNS, TLS, or what Secure
// Boot verifies of a program.
package firmware

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// Config is one mainboard. Chassis is needed; a part that is nil is not there.
type Config struct {
	Node    string
	Chassis *chassis.Chassis
	Boot    inventory.Firmware // how it boots from the network; zero: BootUEFI
	Arch    inventory.Arch     // of its processors; zero: AMD64
	// SecureBoot: it starts signed programs alone, which are those that are called shim.
	SecureBoot bool
	MACs       []addr.MAC  // NICs that boot, in order
	UUID       string      // SMBIOS UUID, sent in option 97; one that cannot be read is sent as zeros
	Clock      clock.Clock // for waits of the hardware; nil: the chassis'. Deadlines of I/O are on the wall clock
	Seed       uint64      // of the site

	Relay *Relay                           // nil: no link
	Net   func(netip.Addr) network.Network // the node's cable once it has this address
	Retry time.Duration                    // first wait after nothing could be booted, doubled up to 5 min; 0: 30 s; negative: it stays halted

	Ramdisk func(context.Context, Kernel) chassis.Exit // runs a kernel with its initrd until it ends
	Disk    func(context.Context) (chassis.Exit, bool) // runs the system on the disk; false: nothing there boots
	Console io.Writer                                  // serial console; lines end in CR LF. Text from outside is not escaped
	Typed   <-chan byte                                // what is typed at it; nil: nothing is
	Shim    Variables                                  // of shim, in the firmware; nil: MokManager is never started
}

// Board is a mainboard. It implements chassis.Board.
type Board struct {
	cfg  Config
	uuid [16]byte   // as on the wire
	rng  *rand.Rand // of Run, which never runs twice at once
}

var _ chassis.Board = (*Board)(nil)

// Waits of the hardware.
const (
	retryFirst = 30 * time.Second
	retryLast  = 5 * time.Minute
	spread     = 0.05 // of POST, to either side: no two boards are as fast
)

// New makes a mainboard. It starts nothing.
func New(cfg Config) *Board {
	if cfg.Boot == "" {
		cfg.Boot = inventory.BootUEFI
	}
	if cfg.Arch == "" {
		cfg.Arch = inventory.AMD64
	}
	if cfg.Clock == nil {
		cfg.Clock = cfg.Chassis.Identity().Clock
	}
	if cfg.Retry == 0 {
		cfg.Retry = retryFirst
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, cfg.Node+"\x00firmware")
	return &Board{cfg: cfg, uuid: smbiosUUID(cfg.UUID), rng: rand.New(rand.NewPCG(cfg.Seed, h.Sum64()))}
}

// Run does one boot: POST, the boot order, and what was booted until it ends. It
// returns soon after ctx has ended, at whatever it was.
func (b *Board) Run(ctx context.Context, cold bool) chassis.Exit {
	c := b.cfg.Chassis
	c.SetPhase("POST")
	b.printf("%s: power-on self test", b.cfg.Node)
	post := float64(c.Identity().Timing.POST)
	post *= 1 - spread + 2*spread*b.rng.Float64()
	if b.cfg.Clock.Sleep(ctx, time.Duration(post)) != nil {
		return chassis.Halt
	}
	c.ApplyBIOS()
	return b.boot(ctx, c.TakeBoot())
}

// result is what became of one boot device. A device that could not be booted
// gives the turn to the next one.
type result struct {
	booted bool
	exit   chassis.Exit
}

// boot goes through the boot order until something boots, as nodes in a rack are
// set to do: somebody may plug in a cable yet.
func (b *Board) boot(ctx context.Context, o chassis.Override) chassis.Exit {
	if o.Target == chassis.BootBIOSSetup && o.Enabled != "Disabled" {
		b.printf("Entering setup")
		return chassis.Halt
	}
	for wait := b.cfg.Retry; ; wait = min(2*wait, retryLast) {
		for _, device := range b.order(o) {
			r := device(ctx)
			if ctx.Err() != nil {
				return chassis.Halt
			}
			if r.booted {
				return r.exit
			}
			b.cfg.Chassis.SetPhase("POST")
		}
		b.printf("No bootable device found")
		if wait < 0 || b.cfg.Clock.Sleep(ctx, wait) != nil {
			return chassis.Halt
		}
	}
}

// order is the override's device, and then the rest: the disk before the network.
func (b *Board) order(o chassis.Override) []func(context.Context) result {
	net := func(how inventory.Firmware) (all []func(context.Context) result) {
		for _, mac := range b.cfg.MACs {
			all = append(all, func(ctx context.Context) result { return b.netboot(ctx, mac, how) })
		}
		return all
	}
	disk := []func(context.Context) result{b.disk}
	switch {
	case o.Enabled == "Disabled", o.Target == chassis.BootNone, o.Target == chassis.BootHDD:
	case o.Target == chassis.BootPXE:
		return append(net(b.cfg.Boot), disk...)
	case o.Target == chassis.BootUEFIHTTP && b.cfg.Boot != inventory.BootBIOS:
		return append(net(inventory.BootUEFIHTTP), disk...)
	default:
		b.printf("Boot device %s is not there", o.Target)
	}
	return append(disk, net(b.cfg.Boot)...)
}

// disk boots the disk.
func (b *Board) disk(ctx context.Context) result {
	if b.cfg.Disk == nil {
		return result{}
	}
	if r, done := b.checkMOK(ctx, func() error { return nil }); done {
		return r
	}
	b.cfg.Chassis.SetPhase("OS")
	exit, ok := b.cfg.Disk(ctx)
	if !ok {
		b.complain(ctx, "Disk: no boot record")
	}
	return result{ok, exit}
}

// printf writes a line to the console.
func (b *Board) printf(format string, args ...any) {
	if b.cfg.Console != nil {
		_, _ = fmt.Fprintf(b.cfg.Console, format+"\r\n", args...) // nobody may be listening
	}
}

// complain says why something could not be done. When it is the power that went,
// nobody says anything.
func (b *Board) complain(ctx context.Context, format string, args ...any) {
	if ctx.Err() == nil {
		b.printf(format, args...)
	}
}

// xid draws a transaction. The next program of a boot draws another, as the boot
// services rely on.
func (b *Board) xid() (x [4]byte) {
	binary.BigEndian.PutUint32(x[:], b.rng.Uint32())
	return x
}
