// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/reach"
)

// How nodes that the state does not know are looked at while planning.
const (
	presenceWait  = 1500 * time.Millisecond // for one node to answer
	presenceTries = 8                       // where this machine itself has no room for a connection
)

// PresenceProbe is a look at the nodes that the state knows nothing about: whether they
// run. An empty state beside running nodes must never lead to an install. The evidence is
// the banner of an SSH server: it is what a running system of any make sends first, our
// own host key included. That a connection is accepted is none: firewalls and proxies
// accept for addresses behind which nobody is. Such nodes are named in a warning. It
// asks no BMC, since a plan resolves no secret; apply does, before it powers anything.
type PresenceProbe struct {
	wg  sync.WaitGroup
	end func() // of the word on how far it is

	mu       sync.Mutex // guards what follows
	done     int
	found    map[string]plan.Presence
	noBanner []string // nodes at whose address something accepts and says nothing
	missed   []string // nodes that this machine could not ask
}

// BeginPresence asks all unknown nodes at once and returns. say is told every few
// seconds how far it is; nil: nobody is.
func (ob Observer) BeginPresence(ctx context.Context, prior plan.Prior, say func(string)) *PresenceProbe {
	l := &PresenceProbe{found: map[string]plan.Presence{}}
	var unknown []*inventory.Node
	for _, n := range ob.Inv.Nodes {
		if n.Image != nil && n.Address.IsValid() && !isKnownNode(prior, n) {
			unknown = append(unknown, n)
		}
	}
	for _, n := range unknown {
		l.wg.Go(func() { l.add(n, ob.probePatiently(ctx, n.Address)) })
	}
	l.end = sayEvery(say, func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		return fmt.Sprintf("Looked at %d of %d nodes that the state does not know.", l.done, len(unknown))
	})
	return l
}

// add notes what one node answered.
func (l *PresenceProbe) add(n *inventory.Node, answer sshAnswer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done++
	switch {
	case answer.banner != "":
		l.found[n.Name] = plan.Presence{Running: true, Evidence: answer.words(n)}
	case answer.accepted:
		l.noBanner = append(l.noBanner, n.Name)
	case answer.skipped:
		l.missed = append(l.missed, n.Name)
	}
}

// Wait returns when nobody is asked any more. A nil look asks nobody.
func (l *PresenceProbe) Wait() {
	if l != nil {
		l.wg.Wait()
		l.end()
	}
}

// Result waits for all answers: which nodes run, and warnings about those of which it is
// not certain. A nil look has none.
func (l *PresenceProbe) Result() (found map[string]plan.Presence, warnings []string) {
	l.Wait()
	if l == nil {
		return nil, nil
	}
	if len(l.noBanner) > 0 {
		warnings = append(warnings, fmt.Sprintf("port %d accepts connections and sends no SSH banner within %s: %s. That is no evidence of a running node (a firewall or a proxy accepts like this); if one runs there, `ironrail hold NODE` keeps it from being installed",
			reach.SSHPort, presenceWait, fold.Nodes(l.noBanner)))
	}
	if len(l.missed) > 0 {
		warnings = append(warnings, fmt.Sprintf("this machine had no room for a connection to %s (file descriptors, ports or neighbours are used up): whether they run is not known. Raise `ulimit -n` or net.ipv4.neigh.default.gc_thresh3, and plan again",
			fold.Nodes(l.missed)))
	}
	return l.found, warnings
}

// probePatiently is probeSSH that tries again where this machine itself had no room for
// the connection: that says nothing of the node.
func (ob Observer) probePatiently(ctx context.Context, a netip.Addr) (answer sshAnswer) {
	for range presenceTries {
		if answer = ob.probeSSH(ctx, a); !answer.skipped {
			return answer
		}
		select {
		case <-ctx.Done():
			return answer
		case <-time.After(presenceWait):
		}
	}
	return answer
}

// isExhausted reports whether a connection was not made since this machine has no file
// descriptor, port, buffer or neighbour entry left (connect(2), arp(7)).
func isExhausted(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EAGAIN, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// isKnownNode reports whether this state has ever done anything with a node.
func isKnownNode(prior plan.Prior, n *inventory.Node) bool {
	if prior.Nodes[n.Name].Known() {
		return true
	}
	_, ok := prior.Fact(install.AttemptFact.Of(subject.OfNode(n.Name)))
	return ok
}

// sshAnswer is what the SSH port of an address answers.
type sshAnswer struct {
	accepted bool   // the connection was accepted
	skipped  bool   // this machine had no room for the connection
	banner   string // the identification string, "SSH-2.0-OpenSSH_9.2p1"; "" for none
}

// words says what answers at a node's address; "": no SSH server does.
func (a sshAnswer) words(n *inventory.Node) string {
	if a.banner == "" {
		return ""
	}
	return fmt.Sprintf("SSH answers at %s (%s)", n.Address, event.Escape(a.banner))
}

// Banner asks a node for the banner of its SSH server, which shows that a system runs there,
// and says it in words; "": none answers.
func (ob Observer) Banner(ctx context.Context, n *inventory.Node) string {
	return ob.probePatiently(ctx, n.Address).words(n)
}

// maxBannerLines and maxBannerLine bound what a server may send before its banner.
const (
	maxBannerLines = 32
	maxBannerLine  = 1024
)

// probeSSH reads what the SSH port of an address sends first: the identification
// string, and other lines before it (RFC 4253, section 4.2). It takes at most
// presenceWait.
func (ob Observer) probeSSH(ctx context.Context, a netip.Addr) (answer sshAnswer) {
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	c, err := ob.Network.Dial(ctx, "tcp", netip.AddrPortFrom(a, reach.SSHPort).String())
	if err != nil {
		answer.skipped = isExhausted(err)
		return answer
	}
	defer c.Close()
	answer.accepted = true
	deadline, _ := ctx.Deadline()
	if c.SetReadDeadline(deadline) != nil {
		return answer
	}
	r := bufio.NewReaderSize(c, maxBannerLine)
	for range maxBannerLines {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return answer
		}
		if strings.HasPrefix(string(line), "SSH-") {
			answer.banner = strings.TrimSpace(string(line))
			return answer
		}
	}
	return answer
}
