// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	virtual "github.com/ironrail/ironrail/rehearse/virtual/kubernetes"
)

const adminToken = "a-token-of-an-administrator"

// virtualPeer is the virtual rack's API server on loopback.
type virtualPeer struct {
	*virtual.Cluster
	at      string
	stopped atomic.Pointer[string]
	t       *testing.T
}

func startVirtual(t *testing.T) peer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &virtualPeer{at: ln.Addr().String(), t: t}
	p.Cluster, err = virtual.New(virtual.Config{Endpoint: p.at, Token: adminToken, Clock: &later{}, Runs: func(node string) bool { s := p.stopped.Load(); return s == nil || *s != node }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p
}

// later is a clock on which a second goes by between two looks, two days ahead of the wall as
// that of hardware on loopback gets. The time of day of a cluster is the wall's all the same:
// bootstrap tokens hold.
type later struct {
	clock.Wall
	looks atomic.Int64
}

// Now is later than the last time.
func (l *later) Now() time.Time {
	return time.Now().Add(48*time.Hour + time.Duration(l.looks.Add(1))*time.Second)
}

func (p *virtualPeer) reach() (string, string, string) { return p.at, p.CA(), adminToken }
func (p *virtualPeer) join(token, node string, taints []virtual.Taint) error {
	return p.Join(token, node, taints)
}
func (p *virtualPeer) submit(pod virtual.Pod) { p.Submit(pod) }
func (p *virtualPeer) schedulable() []string  { return p.Schedulable() }
func (p *virtualPeer) tokens() int            { return p.Tokens() }
func (p *virtualPeer) stop(node string)       { p.stopped.Store(&node) }
func (p *virtualPeer) start(string)           { p.stopped.Store(nil) }
func (p *virtualPeer) cordon(node string) {
	admin(p.t, p, "PATCH", "/api/v1/nodes/"+node, `{"metadata":{"labels":{"kept":"yes"}},"spec":{"unschedulable":true,"taints":[{"key":"theirs","effect":"NoExecute"}]}}`)
}
