package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/remote"
)

// sshPort is where installed nodes answer.
const sshPort = 22

// largestAnswer is the most that is read of an output of a node that is read as a
// whole, bytes: nvidia-smi -q -x of eight GPUs prints 300 KiB.
const largestAnswer = 4 << 20

// bmcs reaches the BMCs of the inventory's nodes, one session each.
type bmcs struct {
	inv     *inventory.Inventory
	pool    *bmc.Pool
	secrets Secrets
	facts   func(fact.Key) (fact.Fact, bool) // certificates that were seen first
}

// handle returns a node's BMC. The password is resolved here, and only here.
func (b bmcs) handle(node string) (*bmc.Handle, error) {
	n, ok := b.inv.Node(node)
	if !ok {
		return nil, errkind.New(errkind.Mismatch, "%s is not in the inventory", node)
	}
	if !n.BMC.Address.IsValid() {
		return nil, errkind.New(errkind.Mismatch, "%s has no BMC address", node).Do("Give its node block `bmc { address = ... }`.")
	}
	t, err := b.target(n, n.Serial)
	if err != nil {
		return nil, err
	}
	return b.pool.Handle(t), nil
}

// target is how a node's BMC is reached; serial is that of its chassis.
func (b bmcs) target(n *inventory.Node, serial string) (bmc.Target, error) {
	pw, err := b.secrets.Resolve(n.BMC.Password)
	if err != nil {
		return bmc.Target{}, errkind.New(errkind.Auth, "BMC password of %s: %w", n.Name, err).Do("Make the secret available to this command, then run it again.")
	}
	return bmc.Target{Node: n.Name, Protocol: bmc.Protocol(n.BMC.Protocol), Addr: netip.AddrPortFrom(n.BMC.Address, n.BMC.Port),
		Username: n.BMC.Username, Password: pw, CipherSuite: uint8(n.BMC.CipherSuite), Endpoint: n.BMC.Endpoint, Serial: serial,
		TLS: bmc.TLS{Mode: bmc.TLSMode(n.BMC.TLS.Mode), Fingerprint: n.BMC.TLS.Fingerprint, CA: n.BMC.TLS.CA}, Pinned: b.pinned(n.Name)}, nil
}

// pinned is the certificate that the BMC of a node showed when it was first
// believed; "" before that.
func (b bmcs) pinned(node string) string {
	f, ok := b.facts(oob.CertificateFact.Of(subject.OfNode(node)))
	if !ok {
		return ""
	}
	seen, err := oob.CertificateFact.Get(f)
	if err != nil {
		return "unreadable" // matches no certificate: better refused than believed
	}
	return seen
}

// nodes reaches installed nodes over SSH with the host keys that were learned.
// It implements onnode.Nodes.
type nodes struct {
	inv    *inventory.Inventory
	pool   *remote.Pool
	signer ssh.Signer
	facts  func(fact.Key) (fact.Fact, bool)
}

// Run implements onnode.Nodes.
func (s nodes) Run(ctx context.Context, node string, c onnode.Command) (onnode.Output, error) {
	cfg, err := s.config(node)
	if err != nil {
		return onnode.Output{}, err
	}
	cmd := sshCommand(c)
	if c.NeedsWhole() {
		cmd.MaxOutput = largestAnswer
	}
	r, err := s.pool.Run(ctx, cfg, cmd)
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

func (s nodes) config(node string) (remote.Config, error) {
	n, ok := s.inv.Node(node)
	if !ok {
		return remote.Config{}, errkind.New(errkind.Mismatch, "%s is not in the inventory", node)
	}
	key, err := s.hostKey(node)
	if err != nil {
		return remote.Config{}, err
	}
	return remote.Config{Node: node, Addr: netip.AddrPortFrom(n.Address, sshPort), User: "root", HostKey: key, Signer: s.signer}, nil
}

// hostKey is the pinned host key: the one that was made on the node.
func (s nodes) hostKey(node string) (ssh.PublicKey, error) {
	f, ok := s.facts(install.HostKeyFact.Of(subject.OfNode(node)))
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
