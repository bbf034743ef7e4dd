// SPDX-License-Identifier: Apache-2.0

// Package ipmi is the IPMI 2.0 front end of a virtual BMC: RMCP+ sessions with
// cipher suites 3 and 17 and serial over LAN on one datagram socket, on a
// chassis.Chassis. The key
// exchange, the session store and the codecs are those of go-ipmi; the receive
// loop is ours, since the library's takes a goroutine and a ticker for each BMC,
// answers commands outside any session, and lets a user rise above its role.
package ipmi

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// Port is the port of RMCP+ (IPMI 2.0, 13.1.2).
const Port = 623

// maxDatagram is larger than any message of a LAN channel; what is longer is cut
// and then fails its checks.
const maxDatagram = 512

// pause is how long a broken socket is left alone.
const pause = 100 * time.Millisecond

// Options is how one BMC differs from others. The zero value is a good BMC whose
// maker is guessed from the chassis.
type Options struct {
	Personality string        // a personality of makers; empty or unknown: by the chassis' manufacturer
	Suites      []uint8       // cipher suites that are offered, of 3 and 17; empty: both
	Sessions    int           // sessions at once; 0: 4. When they are taken, "insufficient resources" is answered
	Delay       time.Duration // before every answer, on the chassis' clock
	// CountAbandoned counts a key exchange that the console gives up as a failed
	// log-in. Without it, as with most makers, only a wrong answer of the console
	// counts, and consoles send none.
	CountAbandoned bool
	VLAN           func() int // ID of the VLAN that its port tags frames with now, 0 for untagged; nil: untagged
	Serial         *Line      // the node's serial line, for serial over LAN; nil: that is switched off
}

// Serve answers on pc until ctx is done and then returns nil; pc is closed and
// all goroutines have ended. While the chassis is not live nothing is answered.
// An idle BMC costs one goroutine and half a KiB; what sessions need is made when
// the first datagram comes. pc that fails for good is an error of kind Internal.
func Serve(ctx context.Context, pc net.PacketConn, c *chassis.Chassis, o Options) error {
	over := ctx // what closes pc; one derived from it may end a moment later
	stop := context.AfterFunc(ctx, func() { _ = pc.Close() })
	defer stop()
	defer pc.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clk := c.Identity().Clock
	k := &controller{c: c, o: o, pc: pc, ctx: ctx, clk: clk, wg: &wg}
	b := make([]byte, maxDatagram)
	for {
		n, from, err := pc.ReadFrom(b)
		switch {
		case over.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return errkind.New(errkind.Internal, "ipmi: %w", err)
		case err != nil: // an ICMP message of somebody who left, for one
			if clk.Sleep(ctx, pause) != nil {
				return nil
			}
			continue
		}
		if o.Delay > 0 && clk.Sleep(ctx, o.Delay) != nil {
			return nil
		}
		k.from = from
		if answer := k.answer(b[:n]); answer != nil {
			_, _ = pc.WriteTo(answer, from) // a lost answer is asked for again
		}
	}
}
