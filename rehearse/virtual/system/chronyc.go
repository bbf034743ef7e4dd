// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// A time server is asked once a minute, and chronyd remembers the last eight times.
const (
	timePoll = 64 * time.Second
	answered = 0o377
)

// ntp is how far a node's clock follows its time server.
type ntp struct {
	synced bool
	reach  int // bits of the last eight times, as chronyc prints it
}

// ntp is that of this node. A server that answered once is followed until another clock is
// better, and for all of the day that a rehearsal takes.
func (n *node) ntp() ntp {
	since := time.Time{}
	if n.cfg.Unanswered != nil {
		since = n.cfg.Unanswered()
	}
	now := n.cfg.Clock.Now()
	switch booted := now.Add(-n.cfg.Kernel.Uptime()); {
	case since.IsZero():
		return ntp{true, answered}
	case !since.After(booted):
		return ntp{}
	}
	return ntp{true, answered << min(8, now.Sub(since)/timePoll) & answered}
}

// runChronyc is chronyc of a node with one time server (chrony 4.3, client.c); the clock of a
// virtual node is the rack's.
func runChronyc(ctx context.Context, c call) int {
	server, now, is := c.n.cfg.Address, c.n.cfg.Clock.Now(), c.n.ntp()
	switch args := strings.Join(c.Argv[1:], " "); {
	case args == "-n -c tracking" && !is.synced:
		c.print("00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,Not synchronised\n")
	case args == "-n -c tracking":
		id := strings.ToUpper(fmt.Sprintf("%x", server.AsSlice()))
		c.print(fmt.Sprintf("%s,%s,3,%d.000000000,0.000000021,-0.000000103,0.000002119,-7.313,0.000,0.012,0.000219,0.000101,64.3,Normal\n", id, server, now.Unix()-31))
	case args == "-n -c sources" && is.reach == 0:
		c.print(fmt.Sprintf("^,?,%s,0,6,0,4294967295,0.000000000,0.000000000,0.000000000\n", server))
	case args == "-n -c sources":
		c.print(fmt.Sprintf("^,*,%s,2,6,%o,31,-0.000000103,-0.000000124,0.000219\n", server, is.reach))
	case strings.HasPrefix(args, "-n waitsync "):
		if is.synced {
			return 0
		}
		return c.waitsync(ctx)
	default:
		return c.fail("this chronyc knows tracking, sources and waitsync alone")
	}
	return 0
}

// waitsync is chronyc waitsync TRIES CORRECTION SKEW SECONDS of a clock that follows nobody.
func (c call) waitsync(ctx context.Context) int {
	var tries, seconds int
	if _, err := fmt.Sscanf(strings.Join(c.Argv[3:], " "), "%d 0 0 %d", &tries, &seconds); err != nil {
		return c.fail("invalid syntax for waitsync command")
	}
	_ = c.n.cfg.Clock.Sleep(ctx, time.Duration(tries*seconds)*time.Second)
	c.print(strings.Repeat("refid: 00000000, correction: 0.000000000, skew: 0.000\n", tries))
	return 1
}
