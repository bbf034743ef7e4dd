// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"io"
	"net/netip"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/remote"
)

// Console is where the serial console of a node is: at its BMC, or at an SSH server.
type Console struct {
	BMC bmc.Target
	SSH *remote.Config // nil: at the BMC
}

// line is what two readers of one console share.
type line struct {
	at   netip.AddrPort
	user string // of SSH, where it may choose the console
}

func (c Console) line() line {
	if c.SSH != nil {
		return line{c.SSH.Addr, c.SSH.User}
	}
	return line{at: c.BMC.Addr}
}

// Console is how the console of a node is reached. The secrets of its login are resolved here, and only here.
func (b BMCs) Console(n *inventory.Node) (Console, error) {
	t, err := b.Target(n, n.Serial)
	if err != nil || n.Console == nil {
		return Console{BMC: t}, err
	}
	c := n.Console
	cfg := remote.Config{Node: n.Name, Addr: netip.AddrPortFrom(c.Address, c.Port), User: c.Username,
		Trust: func(key ssh.PublicKey) error { return checkFingerprint(key, "console", c.HostKey) }}
	err = authenticate(&cfg, "console of "+n.Name, c.Login, b.Secrets, b.Own)
	return Console{BMC: t, SSH: &cfg}, err
}

// Terminal copies what a node prints on its console until ctx ends, and types what comes from keys
// (nil: nothing), as bmc.Terminal does.
type Terminal func(ctx context.Context, c Console, to io.Writer, keys <-chan string, up func()) error

// TerminalOn opens consoles over a network.
func TerminalOn(n network.Network) Terminal {
	return func(ctx context.Context, c Console, to io.Writer, keys <-chan string, up func()) error {
		if c.SSH == nil {
			return bmc.Terminal(ctx, c.BMC, bmc.Options{Network: n}, to, keys, up)
		}
		cfg := *c.SSH
		cfg.Network = n
		return remote.Console(ctx, cfg, bmc.Break, to, keys, up)
	}
}
