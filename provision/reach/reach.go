// SPDX-License-Identifier: Apache-2.0

// Package reach opens what the inventory names, with the secrets of the site and what
// the state knows of certificates and host keys: BMCs, serial consoles, nodes and switches
// over SSH, PDUs, and the programs of schedulers. A secret is resolved where it is used.
package reach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/remote"
)

// Secrets turns references into secrets, while a run needs them.
type Secrets interface {
	Resolve(secret.Ref) (secret.Value, error)
}

// Facts reads facts as they stand in a store. The function is safe for concurrent use.
func Facts(r state.Reader) func(fact.Key) (fact.Fact, bool) {
	return func(k fact.Key) (fact.Fact, bool) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		f, version, err := state.Get[fact.Fact](ctx, r, state.FactKey(k))
		return f, err == nil && version != state.Absent
	}
}

// Access is what the parts of a site are reached with.
type Access struct {
	Inv     *inventory.Inventory
	Network network.Network
	Secrets Secrets
	SSH     ssh.Signer // the controller's own key; nil: it has none yet
}

// BMCs reaches the site's BMCs, in a pool of their own, which the caller closes. facts
// are certificates that were seen first.
func (a Access) BMCs(facts func(fact.Key) (fact.Fact, bool)) BMCs {
	return BMCs{Inv: a.Inv, Pool: bmc.NewPool(bmc.Options{Network: a.Network}), Secrets: a.Secrets, Own: a.SSH, Facts: facts}
}

// Nodes reaches the site's nodes. facts are host keys that were learned.
func (a Access) Nodes(pool *remote.Pool, facts func(fact.Key) (fact.Fact, bool)) Nodes {
	return Nodes{Inv: a.Inv, Pool: pool, Signer: a.SSH, Facts: facts}
}

// Switches reaches the site's switches that have a login. facts are host keys that were
// seen first.
func (a Access) Switches(pool *remote.Pool, facts func(fact.Key) (fact.Fact, bool)) *Switches {
	return &Switches{Inv: a.Inv, Pool: pool, Secrets: a.Secrets, Own: a.SSH, Facts: facts}
}

// SSHPort is where installed nodes answer.
const SSHPort = 22

// largestAnswer is the most that is read of an output of a node that is read as a
// whole, bytes: nvidia-smi -q -x of eight GPUs prints 300 KiB.
const largestAnswer = 4 << 20

// BMCs reaches the BMCs of the inventory's nodes, one session each.
type BMCs struct {
	Inv     *inventory.Inventory
	Pool    *bmc.Pool
	Secrets Secrets
	Own     ssh.Signer                       // for logins of consoles without a secret; nil: the controller has no key yet
	Facts   func(fact.Key) (fact.Fact, bool) // certificates that were seen first
}

// Handle returns a node's BMC. The password is resolved here, and only here.
func (b BMCs) Handle(node string) (*bmc.Handle, error) {
	n, ok := b.Inv.Node(node)
	if !ok {
		return nil, errkind.New(errkind.NotFound, "%s is not in the inventory", node)
	}
	if !n.BMC.Address.IsValid() {
		return nil, errkind.New(errkind.NotFound, "%s has no BMC address", node).Do("Give its node block `bmc { address = ... }`.")
	}
	t, err := b.Target(n, n.Serial)
	if err != nil {
		return nil, err
	}
	return b.Pool.Handle(t), nil
}

// Target is how a node's BMC is reached; serial is that of its chassis.
func (b BMCs) Target(n *inventory.Node, serial string) (bmc.Target, error) {
	pw, err := b.Secrets.Resolve(n.BMC.Password)
	if err != nil {
		return bmc.Target{}, errkind.New(errkind.Auth, "BMC password of %s: %w", n.Name, err).Do("Make the secret available to this command, then run it again.")
	}
	return bmc.Target{Node: n.Name, Protocol: bmc.Protocol(n.BMC.Protocol), Addr: netip.AddrPortFrom(n.BMC.Address, n.BMC.Port),
		Username: n.BMC.Username, Password: pw, CipherSuite: uint8(n.BMC.CipherSuite), Endpoint: n.BMC.Endpoint, Serial: serial,
		TLS: bmc.TLS{Mode: bmc.TLSMode(n.BMC.TLS.Mode), Fingerprint: n.BMC.TLS.Fingerprint, CA: n.BMC.TLS.CA}, Pinned: b.pinned(n.Name)}, nil
}

// pinned is the certificate that the BMC of a node showed when it was first
// believed; "" before that.
func (b BMCs) pinned(node string) string {
	f, ok := b.Facts(oob.CertificateFact.Of(subject.OfNode(node)))
	if !ok {
		return ""
	}
	seen, err := oob.CertificateFact.Get(f)
	if err != nil {
		return "unreadable" // matches no certificate: better refused than believed
	}
	return seen
}

// Nodes reaches installed nodes over SSH with the host keys that were learned.
// It implements onnode.Nodes.
type Nodes struct {
	Inv    *inventory.Inventory
	Pool   *remote.Pool
	Signer ssh.Signer
	Facts  func(fact.Key) (fact.Fact, bool)
}

// Run implements onnode.Nodes.
func (s Nodes) Run(ctx context.Context, node string, c onnode.Command) (onnode.Output, error) {
	cfg, err := s.config(node)
	if err != nil {
		return onnode.Output{}, err
	}
	return RunOn(c, func(cmd remote.Command) (remote.Result, error) { return s.Pool.Run(ctx, cfg, cmd) })
}

// RunOn runs an onnode command by what runs commands over SSH.
func RunOn(c onnode.Command, run func(remote.Command) (remote.Result, error)) (onnode.Output, error) {
	cmd := sshCommand(c)
	if c.NeedsWhole() {
		cmd.MaxOutput = largestAnswer
	}
	r, err := run(cmd)
	return outputOf(c, r, err)
}

// outputOf is how an onnode command ended. Of an output that the caller reads,
// nothing may be missing.
func outputOf(c onnode.Command, r remote.Result, err error) (onnode.Output, error) {
	out := onnode.Output{Stdout: r.Stdout, Stderr: r.Stderr, Exit: r.Exit, Omitted: r.Omitted}
	if err == nil && c.NeedsWhole() {
		err = out.Whole()
	}
	return out, err
}

func (s Nodes) config(node string) (remote.Config, error) {
	n, ok := s.Inv.Node(node)
	if !ok {
		return remote.Config{}, errkind.New(errkind.NotFound, "%s is not in the inventory", node)
	}
	key, err := s.hostKey(node)
	if err != nil {
		return remote.Config{}, err
	}
	return remote.Config{Node: node, Addr: netip.AddrPortFrom(n.Address, SSHPort), User: "root", HostKey: key, Signer: s.Signer}, nil
}

// hostKey is the pinned host key: the one that was made on the node.
func (s Nodes) hostKey(node string) (ssh.PublicKey, error) {
	f, ok := s.Facts(install.HostKeyFact.Of(subject.OfNode(node)))
	if !ok {
		return nil, errkind.New(errkind.Refused, "the host key of %s is not known, so that nothing is said to it", node).
			Do("Install the node, or adopt it: `ironrail adopt " + node + "`.")
	}
	line, err := install.HostKeyFact.Get(f)
	if err != nil {
		return nil, err
	}
	key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err == nil && len(rest) > 0 {
		err = errors.New("more than one key")
	}
	if err != nil {
		return nil, fmt.Errorf("host key of %s in the state: %w", node, err)
	}
	return key, nil
}

// sshCommand is an onnode command as the SSH client takes it.
func sshCommand(c onnode.Command) remote.Command {
	out := remote.Command{Argv: c.Argv, Stdout: c.Stdout, Stderr: c.Stderr}
	if c.Stdin != nil {
		out.Stdin = bytes.NewReader(c.Stdin)
	}
	return out
}
