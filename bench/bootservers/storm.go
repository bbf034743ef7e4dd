// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/addr"
)

// A storm: all nodes ask within a second, as after a power failure, and one client floods the server
// meanwhile.
const (
	stormNodes = 12_500
	stormTime  = time.Second
	askAgain   = 4 * time.Second       // as EDK2
	floodEach  = 50 * time.Microsecond // between packets of the client that floods
)

// measureStorm prints how soon the nodes of a storm have their addresses, of each round, without and
// with a flood, and what that costs.
func measureStorm(ctx context.Context, rounds int, _, self string) error {
	if err := makeNetwork(ctx); err != nil {
		return err
	}
	for _, flood := range []bool{false, true} {
		what := "DHCP storm, " + strconv.Itoa(stormNodes) + " nodes within a second"
		if flood {
			what += ", while one client sends 20,000 DISCOVERs a second"
		}
		fmt.Println(what)
		for range rounds {
			if err := oneStorm(ctx, self, flood); err != nil {
				return err
			}
		}
	}
	return nil
}

// oneStorm starts the server, lets the storm go and prints a line.
func oneStorm(ctx context.Context, self string, flood bool) error {
	cmd := exec.CommandContext(ctx, self, "dhcp", strconv.Itoa(stormNodes))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { // how it ends after a signal is not asked
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
	}()
	time.Sleep(time.Second) // it opens its sockets
	before, err := processorTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	stop := func() {}
	if flood {
		if stop, err = floodServer(ctx); err != nil {
			return err
		}
	}
	s, err := storm(ctx)
	stop()
	if err != nil {
		return err
	}
	after, err := processorTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	slices.Sort(s.took)
	at := func(share float64) time.Duration {
		return s.took[int(share*float64(stormNodes-1))].Round(100 * time.Microsecond)
	}
	fmt.Printf("  %d of %d have an address, half within %v of asking, 99%% within %v, the last within %v; %d asked again; %.2f CPU seconds\n",
		len(s.took), stormNodes, at(0.5), at(0.99), at(1), s.repeats, (after - before).Seconds())
	return nil
}

// asking is the nodes of a storm.
type asking struct {
	*asker
	began   time.Time
	first   []time.Time // when each asked first
	last    []time.Time // and last
	next    int         // whose last is the oldest
	repeats int
	took    []time.Duration // how long each waited for its address
}

// storm has every node ask at its time within stormTime, and each without an address again after
// askAgain.
func storm(ctx context.Context) (*asking, error) {
	a, err := newAsker(false)
	if err != nil {
		return nil, err
	}
	defer a.conn.Close()
	s := &asking{asker: a, began: time.Now()}
	b := make([]byte, 2048)
	for a.done < stormNodes && ctx.Err() == nil {
		now := time.Now()
		if now.Sub(s.began) > time.Minute {
			return nil, fmt.Errorf("%d of %d nodes have an address after a minute", a.done, stormNodes)
		}
		if err := s.ask(now); err != nil {
			return nil, err
		}
		_ = a.conn.SetReadDeadline(now.Add(time.Millisecond))
		n, _, err := a.conn.ReadFrom(b)
		if err == nil {
			err = s.take(b[:n])
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
	}
	return s, ctx.Err()
}

// ask has those nodes ask whose time it is.
func (s *asking) ask(now time.Time) error {
	due := min(stormNodes, int(int64(stormNodes)*int64(now.Sub(s.began))/int64(stormTime)))
	for len(s.state) < due {
		s.state, s.first, s.last = append(s.state, asks), append(s.first, now), append(s.last, now)
		if err := s.send(s.discover, len(s.state)-1); err != nil {
			return err
		}
	}
	for ; len(s.last) == stormNodes && now.Sub(s.last[s.next]) >= askAgain; s.next = (s.next + 1) % stormNodes {
		s.last[s.next] = now
		if s.state[s.next] != asks {
			continue
		}
		s.repeats++
		if err := s.send(s.discover, s.next); err != nil {
			return err
		}
	}
	return nil
}

// take reads a frame.
func (s *asking) take(b []byte) error {
	i, got, err := s.answer(b)
	if err != nil || !got || s.state[i] != asks {
		return err
	}
	s.state[i] = has
	s.done++
	s.took = append(s.took, time.Since(s.first[i]))
	return nil
}

// floodServer sends DISCOVERs in the name of one client that nobody knows, until stop.
func floodServer(ctx context.Context) (stop func(), err error) {
	a, err := newAsker(false)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.conn.Close()
		for next := time.Now(); ctx.Err() == nil; next = next.Add(floodEach) {
			for time.Now().Before(next) {
				time.Sleep(time.Until(next))
			}
			if a.sendAs(a.discover, addr.MAC{2, 0xff, 0, 0, 0, 1}, 0) != nil {
				return
			}
		}
	}()
	return func() { cancel(); <-done }, nil
}
