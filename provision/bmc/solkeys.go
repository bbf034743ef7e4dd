// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Times of what is typed over serial over LAN.
const (
	serialKeys  = 20 * time.Millisecond  // from one look for keys to the next, while somebody types
	serialIdle  = 100 * time.Millisecond // the same where nobody has typed for serialPause
	serialPause = 5 * time.Second
	serialAgain = time.Second // without an acknowledgement: the packet is sent again
	serialTries = 8           // of one packet
)

// Break, among keys, is the break signal of the serial line: SysRq of Linux on it.
const Break = "\x00break\x00"

// serialBreak is the operation that generates a break (IPMI 2.0, table 15-2).
const serialBreak = 0x10

// typed are the characters that a BMC has not acknowledged yet: one packet at a time (IPMI 2.0,
// 15.11).
type typed struct {
	text   []byte
	signal bool // a break, in a packet of its own
	number byte // of the packet, 1 to 15
	fresh  bool // it is not sent yet
	sent   time.Time
	tries  int
}

// acknowledge takes what a packet of the BMC says of the one that was typed. One that it refuses is
// sent again; of one that it took in part the rest is sent, of one that it took nothing of all, after a
// pause.
func (t *typed) acknowledge(p []byte) {
	if t.isEmpty() || t.fresh || p[1] != t.number || p[3]&serialNack != 0 {
		return
	}
	if t.signal {
		t.signal = false
		return
	}
	taken, tries := min(int(p[2]), len(t.text)), t.tries
	t.text = t.text[taken:]
	t.begin()
	if taken == 0 {
		t.fresh, t.tries = false, tries
	}
}

// isEmpty reports whether all that was typed is acknowledged.
func (t *typed) isEmpty() bool { return len(t.text) == 0 && !t.signal }

// begin numbers what is to be sent.
func (t *typed) begin() {
	t.number, t.fresh, t.tries = t.number%15+1, true, 0
}

// typeKeys sends the next packet of what is to be typed, and again what was not acknowledged.
func (s *serial) typeKeys(now time.Time) error {
	t := &s.typing
	if t.isEmpty() {
		select {
		case keys := <-s.keys:
			if t.signal = keys == Break; !t.signal {
				t.text = []byte(keys)
			}
			s.typedAt = now
			t.begin()
		default:
			return nil
		}
	}
	switch {
	case t.isEmpty(), !t.fresh && now.Sub(t.sent) < serialAgain:
		return nil
	case t.tries >= serialTries:
		return errkind.New(errkind.Timeout, "the BMC acknowledges nothing of what is typed")
	}
	t.fresh, t.sent = false, now
	t.tries++
	operation := byte(0)
	if t.signal {
		operation = serialBreak
	}
	return s.send(types.PayloadTypeSOL, append([]byte{t.number, 0, 0, operation}, t.text...))
}

// nextLook is until when a datagram is waited for.
func (s *serial) nextLook(now, asked time.Time) time.Time {
	next := asked.Add(serialKeepAlive)
	pause := serialIdle
	if now.Sub(s.typedAt) < serialPause {
		pause = serialKeys
	}
	if look := now.Add(pause); s.keys != nil && look.Before(next) {
		return look
	}
	return next
}
