// SPDX-License-Identifier: Apache-2.0

// Package exchange runs one measurement of TCP between two nodes over a network, by their agents.
package exchange

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
)

const (
	// Streams are the connections of a direction: one that waits for its turn on a busy core leaves
	// the link to others.
	Streams = 8
	// Seconds is how long each direction is loaded: a tenth of what iperf3 does by default.
	// What TCP needs to find out what a path in one room carries is a part of a second.
	Seconds = 2
	// waitSeconds is how long the end that listens waits for the other one.
	waitSeconds = 30
	// Limit ends what hangs: both ends have limits of their own, and are over before.
	Limit = 2 * time.Minute
	// patience is how long the end that listens has to report once the other one did.
	patience = 10 * time.Second
	// mostAnswer is what an end may print, bytes.
	mostAnswer = 64 << 10
)

// End is a node that takes part.
type End struct {
	Node    string
	Address netip.Addr // on the network, where it is known; the node itself finds it else
	Place   int        // of the caller's
}

// Exchange is a measurement between two nodes: A listens.
type Exchange struct {
	A       string          `json:"listens"`
	B       string          `json:"connects"`
	Network string          `json:"network"`
	SeenA   wire.Throughput `json:"seen_by_listener"`
	SeenB   wire.Throughput `json:"seen_by_other"`
	Why     string          `json:"why,omitempty"`    // nothing was measured, which speaks against nobody
	Broken  string          `json:"broken,omitempty"` // no connection between them

	PlaceA int `json:"-"` // of A, as the caller has it
	PlaceB int `json:"-"`
}

// Runner runs exchanges over one network, any number of them side by side.
type Runner struct {
	Nodes   onnode.Nodes
	Network string
	Prefix  netip.Prefix
}

// newParams are those of one measurement, with a token of its own.
func (r Runner) newParams() wire.ThroughputParams {
	token := make([]byte, 16)
	_, _ = rand.Read(token) // it never fails
	return wire.ThroughputParams{Network: r.Prefix, Token: hex.EncodeToString(token), Streams: Streams, Seconds: Seconds, Wait: waitSeconds}
}

// Run measures between two nodes.
func (r Runner) Run(ctx context.Context, from, to End) *Exchange {
	x := &Exchange{A: from.Node, B: to.Node, Network: r.Network, PlaceA: from.Place, PlaceB: to.Place}
	p := r.newParams()
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	first := &lines{ready: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		q := p
		q.Address = from.Address
		var err error
		x.SeenA, err = r.agent(ctx, from, q, first)
		ended <- err
	}()
	select {
	case <-first.ready:
	case err := <-ended:
		x.fail(from, err)
		return x
	}
	var ready wire.ThroughputReady
	if err := json.Unmarshal(first.line(), &ready); err != nil || ready.Listening == "" { // it is the answer of one that could not listen
		x.fail(from, errors.Join(<-ended, err))
		return x
	}
	p.Peer, p.Echo, p.MTU, p.Address = ready.Listening, ready.Echo, ready.Link.MTU, to.Address
	seen, err := r.agent(ctx, to, p, &lines{ready: make(chan struct{})})
	x.SeenB = seen
	wait := time.NewTimer(patience)
	defer wait.Stop()
	if err != nil { // nobody speaks to the end that listens any more
		cancel()
	}
	var other error
	select {
	case other = <-ended:
	case <-wait.C:
		cancel()
		other = <-ended
	}
	if x.fail(to, err); err == nil {
		x.fail(from, other)
	}
	return x
}

// agent runs one end. The error of the agent has its kind.
func (r Runner) agent(ctx context.Context, m End, p wire.ThroughputParams, out *lines) (seen wire.Throughput, err error) {
	stdin, err := json.Marshal(p)
	if err != nil {
		return seen, err
	}
	got, err := r.Nodes.Run(ctx, m.Node, onnode.Command{Argv: []string{onnode.AgentPath, "throughput"}, Stdin: stdin, Stdout: out})
	if err != nil {
		return seen, fmt.Errorf("node %s: %w", m.Node, err)
	}
	if err := json.Unmarshal(out.last(), &seen); err != nil {
		return seen, errkind.New(errkind.Unsupported, "node %s: its agent does not measure networks (exit status %d%s)", m.Node, got.Exit, firstLine(got.Stderr))
	}
	if e := seen.Error; e != nil {
		return seen, errkind.New(errkind.Named(e.Kind), "node %s: %s", m.Node, e.Text).Do(e.Action)
	}
	return seen, nil
}

// fail takes in how an end failed: that nodes cannot connect is what was measured, and everything
// else speaks against nobody here.
func (x *Exchange) fail(m End, err error) {
	switch {
	case err == nil || x.Why != "" || x.Broken != "":
	case x.isBroken(m):
		x.Broken = err.Error()
	default:
		x.Why = err.Error()
	}
}

// isBroken reports whether it is the agent of a node that says that it has no connection.
func (x *Exchange) isBroken(m End) bool {
	seen := x.SeenA
	if m.Node == x.B {
		seen = x.SeenB
	}
	return seen.Error != nil && seen.Error.Kind == errkind.Unreachable.String()
}

// lines keeps what an end prints, and says when its first line is there.
type lines struct {
	ready chan struct{}

	mu  sync.Mutex // guards all
	all []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := bytes.IndexByte(l.all, '\n') >= 0
	if len(l.all)+len(p) <= mostAnswer {
		l.all = append(l.all, p...)
	}
	if !before && bytes.IndexByte(l.all, '\n') >= 0 {
		close(l.ready)
	}
	return len(p), nil
}

func (l *lines) line() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, _, _ := bytes.Cut(l.all, []byte("\n"))
	return bytes.Clone(first)
}

func (l *lines) last() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := bytes.TrimSpace(l.all)
	return bytes.Clone(all[bytes.LastIndexByte(all, '\n')+1:])
}

// firstLine is ": " and the first line of a text, or nothing.
func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	if len(line) == 0 {
		return ""
	}
	return ": " + string(line)
}
