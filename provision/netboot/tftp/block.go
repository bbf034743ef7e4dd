// SPDX-License-Identifier: Apache-2.0

package tftp

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv4"
)

// What a source may be refused before its datagrams are dropped by the kernel, and
// for how long. The library opens a socket for every request, also for those that
// are refused.
const (
	refusals   = 20
	refusalsIn = time.Second
	blockTime  = 10 * time.Second
	maxBlocked = 256 // sources; a filter has at most 4,096 instructions
)

// blocker drops the datagrams of sources that were refused too often, by a filter of
// the socket. It is safe for concurrent use.
type blocker struct {
	attach func([]bpf.RawInstruction) error
	clear  func() error

	mu      sync.Mutex // guards what follows
	recent  map[netip.Addr]*recent
	blocked map[netip.Addr]time.Time // until when
	timer   *time.Timer
}

// recent are the refusals of one source.
type recent struct {
	since time.Time
	n     int
}

// newBlocker returns a blocker of a socket of the operating system.
func newBlocker(conn net.PacketConn) *blocker {
	p := ipv4.NewPacketConn(conn)
	return &blocker{attach: p.SetBPF, clear: func() error { return p.SetBPF(acceptAll()) },
		recent: map[netip.Addr]*recent{}, blocked: map[netip.Addr]time.Time{}}
}

// refused counts a refusal; it reports whether the source is dropped from now on.
func (b *blocker) refused(from netip.Addr, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.recent[from]
	if r == nil || now.Sub(r.since) >= refusalsIn {
		if len(b.recent) >= 4*maxBlocked {
			clear(b.recent)
		}
		r = &recent{since: now}
		b.recent[from] = r
	}
	if r.n++; r.n <= refusals || !from.Is4() || len(b.blocked) >= maxBlocked {
		return false
	}
	if _, already := b.blocked[from]; already {
		return false // what the kernel had queued
	}
	b.blocked[from] = now.Add(blockTime)
	return b.apply()
}

// apply gives the socket the filter of what is blocked; mu is held.
func (b *blocker) apply() bool {
	if b.timer == nil && len(b.blocked) > 0 {
		b.timer = time.AfterFunc(blockTime, b.expire)
	}
	if len(b.blocked) == 0 {
		return b.clear() == nil
	}
	filter, err := dropFrom(slices.SortedFunc(maps.Keys(b.blocked), netip.Addr.Compare))
	return err == nil && b.attach(filter) == nil
}

// expire lets sources through whose time is over.
func (b *blocker) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = nil
	now := time.Now()
	maps.DeleteFunc(b.blocked, func(_ netip.Addr, until time.Time) bool { return !now.Before(until) })
	b.apply()
}

// stop ends the blocker's timer.
func (b *blocker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// atSource is where a socket filter finds the source address of an IPv4 packet: byte
// 12 of the network header (SKF_NET_OFF of linux/filter.h), since the filter of a UDP
// socket begins at the UDP header.
const atSource = 0xfff00000 + 12

// whole is the verdict "accept all bytes".
const whole = 0x40000

// dropFrom is a filter that drops datagrams of these addresses.
func dropFrom(from []netip.Addr) ([]bpf.RawInstruction, error) {
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: atSource, Size: 4}}
	for _, a := range from {
		b := a.As4()
		v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, bpf.RetConstant{Val: 0})
	}
	return bpf.Assemble(append(program, bpf.RetConstant{Val: whole}))
}

// acceptAll is a filter that drops nothing.
func acceptAll() []bpf.RawInstruction {
	return []bpf.RawInstruction{{Op: 0x06, K: whole}} // BPF_RET | BPF_K
}
