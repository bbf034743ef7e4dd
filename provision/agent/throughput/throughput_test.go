// SPDX-License-Identifier: Apache-2.0

package throughput

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

const token = "00112233445566778899aabbccddeeff"

// machine takes what it is given.
type machine struct {
	got   Session
	local error
	fails error
}

func (m *machine) Find(netip.Prefix, netip.Addr) (netip.Addr, string, error) {
	return netip.MustParseAddr("10.1.0.7"), "ens1f0", m.local
}

func (m *machine) Serve(_ context.Context, s Session, ready func(tcp, udp uint16) error) (Seen, error) {
	m.got = s
	return Seen{Received: wire.Received{Bytes: 100, Seconds: 2}}, errors.Join(ready(4001, 4002), m.fails)
}

func (m *machine) Measure(_ context.Context, s Session) (Seen, error) {
	m.got = s
	return Seen{Sent: wire.Sent{Segments: 9, Again: 1}, Path: &wire.PathMTU{Asked: s.MTU}}, m.fails
}

func free(context.Context) (func(), error) { return func() {}, nil }

func meterOf(m *machine, ready *bytes.Buffer) Meter {
	return Meter{FS: sysfs.Of(fstest.MapFS{
		"sys/class/net/ens1f0/mtu":   {Data: []byte("9000\n")},
		"sys/class/net/ens1f0/speed": {Data: []byte("25000\n")},
	}), Machine: m, Lock: free, Ready: ready}
}

func params() wire.ThroughputParams {
	return wire.ThroughputParams{Network: netip.MustParsePrefix("10.1.0.0/16"), Token: token, Streams: 4, Seconds: 2, Wait: 20}
}

// TestRun: the end that listens says where, and the other one is given the packet that both
// interfaces send at once.
func TestRun(t *testing.T) {
	t.Parallel()
	m, said := &machine{}, &bytes.Buffer{}
	r := meterOf(m, said).Run(t.Context(), params())
	var ready wire.ThroughputReady
	if err := json.Unmarshal(said.Bytes(), &ready); err != nil || ready.Listening != "10.1.0.7:4001" || ready.Echo != 4002 || ready.Link != r.Link {
		t.Errorf("%s: %v", said, err)
	}
	if r.Link != (wire.NetworkLink{Netdev: "ens1f0", Address: "10.1.0.7", MTU: 9000, Bits: 25e9}) || r.Received.Rate() != 50 || r.Error != nil {
		t.Errorf("%+v", r)
	}
	p := params()
	p.Peer, p.Echo, p.MTU = ready.Listening, ready.Echo, 1500
	r = meterOf(m, said).Run(t.Context(), p)
	if r.Error != nil || r.Path.Asked != 1500 || r.Sent.Again != 1 || m.got.Peer.String() != ready.Listening || m.got.Echo != 4002 {
		t.Errorf("%+v, given %+v", r, m.got)
	}
}

// TestRefused: what makes no measurement is an error with its reason.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*wire.ThroughputParams)
		m      machine
		want   string
	}{
		"token":      {change: func(p *wire.ThroughputParams) { p.Token = "abc" }, want: "32 hex digits"},
		"streams":    {change: func(p *wire.ThroughputParams) { p.Streams = 65 }, want: "1 to 64 streams"},
		"time":       {change: func(p *wire.ThroughputParams) { p.Seconds = 61 }, want: "up to 60 seconds"},
		"no wait":    {change: func(p *wire.ThroughputParams) { p.Wait = 0 }, want: "up to 120 seconds"},
		"no network": {change: func(p *wire.ThroughputParams) { p.Network = netip.Prefix{} }, want: "needs a network"},
		"peer":       {change: func(p *wire.ThroughputParams) { p.Peer = "n2" }, want: "the other end"},
		"address":    {m: machine{local: errors.New("no address in it")}, want: "no address in it"},
		"fails":      {m: machine{fails: errors.New("cut")}, want: "cut"},
	} {
		p := params()
		if c.change != nil {
			c.change(&p)
		}
		if r := meterOf(&c.m, &bytes.Buffer{}).Run(t.Context(), p); r.Error == nil || !strings.Contains(r.Error.Text, c.want) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
