// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
)

// nodes answer as agents do.
type nodes struct {
	mu     sync.Mutex // guards params
	params map[string]wire.ThroughputParams
	run    func(ctx context.Context, node string, p wire.ThroughputParams, out io.Writer) (onnode.Output, error)
}

func (n *nodes) Run(ctx context.Context, node string, c onnode.Command) (onnode.Output, error) {
	var p wire.ThroughputParams
	if err := json.Unmarshal(c.Stdin, &p); err != nil {
		return onnode.Output{}, err
	}
	n.mu.Lock()
	n.params[node] = p
	n.mu.Unlock()
	return n.run(ctx, node, p, c.Stdout)
}

// answer prints as an agent does, in pieces.
func answer(out io.Writer, values ...any) {
	for _, v := range values {
		b, _ := json.Marshal(v)
		_, _ = out.Write(b[:len(b)/2])
		_, _ = out.Write(append(b[len(b)/2:], '\n'))
	}
}

func TestExchange(t *testing.T) {
	t.Parallel()
	ready := wire.ThroughputReady{Listening: "10.1.0.1:41000", Echo: 41001, Link: wire.NetworkLink{MTU: 9000}}
	good := wire.Throughput{Link: wire.NetworkLink{Netdev: "eth0"}, Received: wire.Received{Bytes: 10, Seconds: 1}}
	refused := wire.Throughput{Error: &wire.TaskError{Kind: "unreachable", Text: "no TCP connection with the other node"}}
	for _, c := range []struct {
		name        string
		run         func(ctx context.Context, listens bool, out io.Writer) (onnode.Output, error)
		why, broken string
	}{
		{name: "good", run: func(_ context.Context, listens bool, out io.Writer) (onnode.Output, error) {
			if listens {
				answer(out, ready)
			}
			answer(out, good)
			return onnode.Output{}, nil
		}},
		{name: "an agent of before", why: "its agent does not measure networks (exit status 64: usage: ironrail-agent COMMAND)", run: func(context.Context, bool, io.Writer) (onnode.Output, error) {
			return onnode.Output{Exit: 64, Stderr: []byte("usage: ironrail-agent COMMAND\n  roce\n")}, nil
		}},
		{name: "not on the network", why: "no interface that is up", run: func(_ context.Context, _ bool, out io.Writer) (onnode.Output, error) {
			answer(out, wire.Throughput{Error: &wire.TaskError{Kind: "not-found", Text: "no interface that is up has an address"}})
			return onnode.Output{Exit: 1}, nil
		}},
		{name: "gone", why: "no route", run: func(context.Context, bool, io.Writer) (onnode.Output, error) {
			return onnode.Output{}, errors.New("no route to host")
		}},
		{name: "no connection", broken: "no TCP connection", run: func(ctx context.Context, listens bool, out io.Writer) (onnode.Output, error) {
			if listens { // it waits for a node that cannot come
				answer(out, ready)
				<-ctx.Done()
				return onnode.Output{}, ctx.Err()
			}
			answer(out, refused)
			return onnode.Output{Exit: 1}, nil
		}},
	} {
		n := &nodes{params: map[string]wire.ThroughputParams{}}
		n.run = func(ctx context.Context, node string, p wire.ThroughputParams, out io.Writer) (onnode.Output, error) {
			return c.run(ctx, p.Peer == "", out)
		}
		end := func(i int) End {
			return End{Node: fmt.Sprintf("n%d", i+1), Address: netip.AddrFrom4([4]byte{10, 1, 0, byte(i + 1)}), Place: i}
		}
		x := Runner{Nodes: n, Network: "boot", Prefix: netip.MustParsePrefix("10.1.0.0/16")}.Run(t.Context(), end(0), end(1))
		if !strings.Contains(x.Why, c.why) || !strings.Contains(x.Broken, c.broken) || (x.Why == "") != (c.why == "") || (x.Broken == "") != (c.broken == "") {
			t.Errorf("%s: %+v", c.name, x)
		}
		a, b := n.params["n1"], n.params["n2"]
		if c.name == "good" && (len(a.Token) != 32 || a.Token != b.Token || b.Peer != ready.Listening || b.Echo != ready.Echo || b.MTU != 9000 || a.Address != end(0).Address || x.PlaceB != 1 || x.SeenA.Received.Rate() != 10 || x.SeenB.Received.Rate() != 10) {
			t.Errorf("given %+v and %+v: %+v", a, b, x)
		}
	}
}

// TestAnswersAreBounded: what an end prints without end is not kept.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	l := &lines{ready: make(chan struct{})}
	for range 100 {
		_, _ = l.Write(make([]byte, 4<<10))
	}
	if len(l.all) > mostAnswer {
		t.Errorf("%d bytes are kept", len(l.all))
	}
}
