// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/artifacts"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/remote"
)

// Bounds of what is done on hosts at a time, and of each call.
const (
	parallel    = 32
	resolveWait = 10 * time.Second
	dialWait    = 15 * time.Second
	shortWait   = 30 * time.Second // for a command that looks at one thing
)

// node is a host that is logged in to.
type node struct {
	host   Host
	addr   netip.Addr
	arch   inventory.Arch
	client *remote.Client
	folder *folder
	sudo   bool
}

// fleet is the hosts that are logged in to. It implements onnode.Nodes: the agent
// is the one in a folder that goes when the fleet is closed.
type fleet struct {
	nodes map[string]*node
	jump  *remote.Client // that all of them are reached through; nil: none
}

// Run implements onnode.Nodes.
func (f *fleet) Run(ctx context.Context, name string, c onnode.Command) (onnode.Output, error) {
	n := f.nodes[name]
	if n == nil {
		return onnode.Output{}, errkind.New(errkind.NotFound, "%s is not among the hosts that were reached", name)
	}
	c.Argv = slices.Clone(c.Argv)
	if len(c.Argv) > 0 && c.Argv[0] == onnode.AgentPath {
		c.Argv[0] = n.folder.path + "/ironrail-agent"
	}
	c.Argv = append(boundedBy(ctx), c.Argv...)
	if n.sudo {
		c.Argv = append([]string{"sudo", "-n", "--"}, c.Argv...)
	}
	return reach.RunOn(c, func(cmd remote.Command) (remote.Result, error) { return n.client.Run(ctx, cmd) })
}

// Longest times of commands on hosts.
const (
	commandLife  = 15 * time.Minute // without a deadline
	commandGrace = 30 * time.Second // after its deadline, for us to end it
)

// boundedBy ends a command on the host itself, also when the connection is lost.
func boundedBy(ctx context.Context) []string {
	life := commandLife
	if at, ok := ctx.Deadline(); ok {
		life = min(life, max(0, time.Until(at)))
	}
	return []string{"timeout", "-k", "5", strconv.Itoa(int((life + commandGrace).Seconds()))}
}

// close removes the folders and ends the connections. It returns what may be left,
// by host.
func (f *fleet) close() map[string]error {
	var mu sync.Mutex
	left := map[string]error{}
	each(f.names(), func(name string) {
		n := f.nodes[name]
		err := n.folder.remove()
		_ = n.client.Close()
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			left[name] = err
		}
	})
	if f.jump != nil {
		_ = f.jump.Close()
	}
	return left
}

// names are the hosts, in the order of their names.
func (f *fleet) names() []string {
	var list []string
	for name := range f.nodes {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// each calls f for all of a list, a few at a time, and returns when all have ended.
func each[T any](list []T, f func(T)) {
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for _, x := range list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(x)
		})
	}
	wg.Wait()
}

// connector logs in to hosts.
type connector struct {
	login   Login
	known   *knownHosts
	signers []ssh.Signer
	agent   string // path of the agent program
	say     func(string)

	mu       sync.Mutex // guards what follows
	programs map[inventory.Arch][]byte
	fleet    *fleet
	failed   map[string]error
	unknown  []UnknownKey
}

// connect logs in to all hosts, and asks once about all unknown host keys. It returns
// the hosts that were reached, and why the others were not. The caller closes the
// fleet, also after an error.
func (c *connector) connect(ctx context.Context, hosts []Host) (*fleet, map[string]error, error) {
	c.fleet, c.failed, c.programs = &fleet{nodes: map[string]*node{}}, map[string]error{}, map[inventory.Arch][]byte{}
	if c.login.Jump != nil {
		var err error
		if c.fleet.jump, err = c.openJump(ctx, *c.login.Jump); err != nil {
			return c.fleet, c.failed, err
		}
	}
	each(hosts, func(h Host) { c.reach(ctx, h, nil) })
	if len(c.unknown) > 0 && ctx.Err() == nil {
		if err := c.confirm(ctx); err != nil {
			return c.fleet, c.failed, err
		}
	}
	return c.fleet, c.failed, context.Cause(ctx)
}

// confirm asks about the unknown keys, and logs in where they are believed.
func (c *connector) confirm(ctx context.Context) error {
	unknown := c.unknown
	slices.SortFunc(unknown, func(a, b UnknownKey) int { return strings.Compare(a.Host.Name, b.Host.Name) })
	yes := false
	if c.login.Confirm != nil {
		var err error
		if yes, err = c.login.Confirm(ctx, unknown); err != nil {
			return err
		}
	}
	if !yes {
		for _, u := range unknown {
			c.failed[u.Host.Name] = refuseUnknown(u)
		}
		return nil
	}
	if err := c.known.remember(unknown); err != nil {
		c.say(fmt.Sprintf("warning: the host keys were not added to %s: %v", c.known.add, err))
	}
	c.unknown = nil
	each(unknown, func(u UnknownKey) { c.reach(ctx, u.Host, u.Key) })
	return nil
}

// reach logs in to one host and puts the agent there. confirmed is its key where a
// person has just said so.
func (c *connector) reach(ctx context.Context, h Host, confirmed ssh.PublicKey) {
	n, err := c.open(ctx, h, confirmed)
	c.mu.Lock()
	defer c.mu.Unlock()
	var unknown *unknownKeyError
	switch {
	case err == nil:
		c.fleet.nodes[h.Name] = n
	case errors.As(err, &unknown):
		c.unknown = append(c.unknown, UnknownKey{h, unknown.key})
	default:
		c.failed[h.Name] = err
	}
}

// openJump logs in to the host that all others are reached through, whose key may be
// asked about by itself.
func (c *connector) openJump(ctx context.Context, h Host) (*remote.Client, error) {
	client, _, err := c.dial(ctx, h, nil)
	var unknown *unknownKeyError
	if errors.As(err, &unknown) {
		u := UnknownKey{h, unknown.key}
		yes := false
		if c.login.Confirm != nil {
			if yes, err = c.login.Confirm(ctx, []UnknownKey{u}); err != nil {
				return nil, err
			}
		}
		if !yes {
			err := refuseUnknown(u)
			return nil, errkind.New(errkind.Of(err), "jump host %s: %w", h.Name, err).Do(errkind.Action(err))
		}
		if err := c.known.remember([]UnknownKey{u}); err != nil {
			c.say(fmt.Sprintf("warning: the host key was not added to %s: %v", c.known.add, err))
		}
		client, _, err = c.dial(ctx, h, unknown.key)
	}
	if err != nil {
		return nil, errkind.New(errkind.Of(err), "jump host: %w", err).Do(errkind.Action(err))
	}
	return client, nil
}

// dial logs in to a host. key is the one that a person has just confirmed; nil: the
// known one is wanted.
func (c *connector) dial(ctx context.Context, h Host, key ssh.PublicKey) (*remote.Client, netip.Addr, error) {
	addr, err := c.resolve(ctx, h)
	if err != nil {
		return nil, addr, err
	}
	if key == nil {
		if key, err = c.known.known(h.Endpoint()); err != nil {
			return nil, addr, err
		}
	}
	cfg := remote.Config{Node: h.Name, Addr: netip.AddrPortFrom(addr, h.Port), User: c.userOf(h), HostKey: key, Signer: c.signers[0], Further: c.signers[1:], Timeout: dialWait,
		Trust: func(shown ssh.PublicKey) error { return errkind.New(errkind.Refused, "%w", &unknownKeyError{shown}) }}
	if c.fleet.jump != nil {
		cfg.Network = remote.Through{Client: c.fleet.jump}
	}
	client, err := remote.Dial(ctx, cfg)
	return client, addr, withAction(h, err)
}

// userOf is the user that a host is logged in to as.
func (c *connector) userOf(h Host) string { return cmp.Or(h.User, c.login.User) }

// open logs in to a host and puts the agent there.
func (c *connector) open(ctx context.Context, h Host, key ssh.PublicKey) (*node, error) {
	n := &node{host: h, sudo: c.login.Sudo && c.userOf(h) != "root"}
	var err error
	if n.client, n.addr, err = c.dial(ctx, h, key); err != nil {
		return nil, err
	}
	program, err := c.programFor(ctx, n)
	if err == nil && n.sudo {
		err = checkSudo(ctx, n, c.userOf(h))
	}
	if err == nil {
		n.folder, err = openFolder(ctx, n.client, program)
	}
	if err != nil {
		_ = n.client.Close()
		return nil, err
	}
	return n, nil
}

// checkSudo looks whether a user may run commands by sudo without a password.
func checkSudo(ctx context.Context, n *node, user string) error {
	ctx, cancel := context.WithTimeout(ctx, shortWait)
	defer cancel()
	r, err := n.client.Run(ctx, remote.Command{Argv: []string{"sudo", "-n", "--", "true"}, MaxOutput: 1024})
	if err != nil || r.Exit == 0 {
		return err
	}
	return errkind.New(errkind.Auth, "user %s may not run commands by sudo without a password: exit status %d: %s", user, r.Exit, strings.TrimSpace(string(r.Stderr))).
		Do("Give the user NOPASSWD in sudoers, or log in as root, or leave --sudo out: less is judged then.")
}

// withAction gives the errors of a log-in the action of hosts that ironrail did not
// install.
func withAction(h Host, err error) error {
	switch errkind.Of(err) {
	case errkind.Auth:
		return errkind.New(errkind.Auth, "%w", err).Do("Put the public key into authorized_keys of that user on the node, or name another key (--key) or user (--user, or USER@HOST in the file).")
	case errkind.Mismatch:
		return errkind.New(errkind.Mismatch, "%w", err).Do("Find out why before going on: the node was installed again, or another one answers at this address. If the change is intended, remove its old key: ssh-keygen -R '" + knownhosts.Normalize(h.Endpoint()) + "'")
	}
	return err
}

// resolve finds the address of a host, as the jump host sees it where there is one.
func (c *connector) resolve(ctx context.Context, h Host) (netip.Addr, error) {
	if a, err := netip.ParseAddr(h.Addr); err == nil {
		return a, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveWait)
	defer cancel()
	const action = "Correct the name, or write its address: ADDRESS NAME."
	if c.fleet.jump != nil {
		r, err := c.fleet.jump.Run(ctx, remote.Command{Argv: []string{"getent", "ahosts", h.Addr}, MaxOutput: 4096})
		if err != nil {
			return netip.Addr{}, err
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(r.Stdout)), " ")
		a, err := netip.ParseAddr(first)
		if err != nil {
			return a, errkind.New(errkind.NotFound, "the jump host knows no address of %q", h.Addr).Do(action)
		}
		return a.Unmap(), nil
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", h.Addr)
	if err != nil {
		return netip.Addr{}, errkind.New(errkind.NotFound, "no address of %q: %w", h.Addr, err).Do(action)
	}
	return list[0].Unmap(), nil
}

// architectures are the processors of nodes, as uname says it.
var architectures = map[string]inventory.Arch{"x86_64": inventory.AMD64, "aarch64": inventory.ARM64}

// programFor reads the agent for a node's processors.
func (c *connector) programFor(ctx context.Context, n *node) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, shortWait)
	defer cancel()
	r, err := n.client.Run(ctx, remote.Command{Argv: []string{"uname", "-sm"}, MaxOutput: 256})
	if err != nil {
		return nil, err
	}
	system, machine, _ := strings.Cut(strings.TrimSpace(string(r.Stdout)), " ")
	arch := architectures[machine]
	if system != "Linux" || arch == "" {
		return nil, errkind.New(errkind.Unsupported, "the node is %q by uname; Linux on x86_64 and aarch64 is supported", strings.TrimSpace(string(r.Stdout)))
	}
	n.arch = arch
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.programs[arch] == nil {
		if c.programs[arch], err = artifacts.ReadAgent(c.agent, arch); err != nil {
			return nil, err
		}
	}
	return c.programs[arch], nil
}
