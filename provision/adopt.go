package provision

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/fact"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/onnode"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/provision/state"
	"github.com/ironrail/ironrail/provision/subject"
)

// adoptWait bounds the look at one node.
const adoptWait = 30 * time.Second

// Adopt observes a node that runs and records it as it is. Nothing on it is
// changed. The host key is taken as it is seen first; the text says which, so
// that a person can compare it.
func (s *Site) Adopt(ctx context.Context, store state.Store, fence state.Fence, node string, now time.Time) (string, error) {
	n, ok := s.Inv.Node(node)
	if !ok {
		return "", unknownNode(s, node)
	}
	ctx, cancel := context.WithTimeout(ctx, adoptWait)
	defer cancel()
	key, err := s.hostKeyOf(ctx, netip.AddrPortFrom(n.Address, sshPort))
	if err != nil {
		return "", errkind.New(errkind.Of(err), "%s cannot be observed, and what cannot be observed is not adopted: %w", node, err).
			Do("Adopt a node while it runs and answers SSH.")
	}
	seen := fmt.Sprintf("it answers at %s with host key %s", n.Address, ssh.FingerprintSHA256(key))
	facts := []fact.Fact{}
	add := func(f fact.Fact, ferr error) {
		f.Observed = now.UTC()
		facts, err = append(facts, f), errors.Join(err, ferr)
	}
	me := subject.OfNode(node)
	add(install.HostKeyFact.New(me, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), n.Serial))
	if sys, ok := s.systemOf(ctx, node, facts[0]); ok {
		seen += "; it runs kernel " + sys.Kernel
		add(install.SystemFact.New(me, sys, n.Serial))
	} else {
		seen += "; this controller's key does not log in, so that no more is known"
	}
	if err != nil {
		return "", err
	}
	b := state.Batch{}
	for _, f := range facts {
		p, err := state.PutOf(state.FactKey(f.Key), f)
		if err != nil {
			return "", err
		}
		b.Puts = append(b.Puts, p)
		b.Records = append(b.Records, state.Record{Kind: state.FactLearned, Time: now.UTC(), Subject: me}.With(f))
	}
	for i := range b.Puts {
		b.Puts[i].Want = state.Any
	}
	if _, err := store.Append(ctx, fence, b); err != nil {
		return "", err
	}
	return seen, state.AdoptNode(ctx, store, fence, node, now.UTC())
}

// systemOf logs in with the controller's key, when the node lets it.
func (s *Site) systemOf(ctx context.Context, node string, hostKey fact.Fact) (sys install.System, ok bool) {
	pool := remote.NewPoolOn(1, s.network)
	defer pool.Close()
	way := nodes{inv: s.Inv, pool: pool, signer: s.Keys.SSH, facts: func(fact.Key) (fact.Fact, bool) { return hostKey, true }}
	err := onnode.Agent(ctx, way, node, struct{}{}, &sys, "check")
	return sys, err == nil
}

// hostKeyOf asks an SSH server for its host key and leaves.
func (s *Site) hostKeyOf(ctx context.Context, at netip.AddrPort) (ssh.PublicKey, error) {
	c, err := s.network.Dial(ctx, "tcp", at.String())
	if err != nil {
		return nil, errkind.New(errkind.Unreachable, "%w", err)
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	var seen ssh.PublicKey
	enough := errors.New("host key seen")
	_, _, _, err = ssh.NewClientConn(c, at.String(), &ssh.ClientConfig{User: "root", HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error { seen = k; return enough }})
	if seen == nil {
		return nil, errkind.New(errkind.Mismatch, "SSH handshake: %w", err)
	}
	return seen, nil
}

// PowerStatus asks the BMCs of nodes, all of them when none is named. The state
// holds the certificates that they must show.
func (s *Site) PowerStatus(ctx context.Context, r state.Reader, names []string) ([]control.Power, error) {
	want, err := s.named(names)
	if err != nil {
		return nil, err
	}
	b := bmcs{inv: s.Inv, pool: bmc.NewPool(bmc.Options{Network: s.network}), secrets: s.secrets, facts: factsOf(r)}
	list := b.powerOf(ctx, want)
	return list, b.pool.Close(ctx)
}
