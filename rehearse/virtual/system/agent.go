// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/baseline"
	"github.com/ironrail/ironrail/provision/agent/health"
	"github.com/ironrail/ironrail/provision/agent/infiniband"
	"github.com/ironrail/ironrail/provision/agent/interfaces"
	"github.com/ironrail/ironrail/provision/agent/nodecheck"
	"github.com/ironrail/ironrail/provision/agent/roce"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/speed"
	"github.com/ironrail/ironrail/rehearse/virtual/system/shell"
)

// agentPath is where the install step puts the agent.
const agentPath = "/usr/local/sbin/ironrail-agent"

// rails is the agent's own code for rails, on this node.
func (n *node) rails() roce.Node {
	k := rails{n.cfg.Kernel, n}
	return roce.Node{FS: n.fs, Root: func() (rootfs.Root, error) { return n.tree, nil }, Network: k, RDMA: k, QoS: k}
}

// check is the agent's own look at the node.
func (n *node) check(ctx context.Context, c call) wire.NodeCheck {
	return nodecheck.Checker{
		FS: n.fs, Open: n.cfg.Disks,
		Kernel: func() (string, string, error) { return n.hostname(), n.cfg.Kernel.Release(), nil },
		Systemctl: func(ctx context.Context, args ...string) (string, error) {
			var out strings.Builder
			inner := call{shell.Command{Argv: append([]string{"systemctl"}, args...), Streams: shell.Streams{In: strings.NewReader(""), Out: &out, Err: c.Err}}, n, c.pid}
			runSystemctl(ctx, inner)
			return out.String(), nil
		},
	}.Check(ctx)
}

// agentStart is how long the agent needs until it looks. Belief: more, and it matters to
// nobody.
const agentStart = time.Millisecond

// agentProgram is `ironrail-agent`: the agent's code with this node below it.
func agentProgram(ctx context.Context, c call) int {
	switch command := strings.Join(c.Argv[1:], " "); command {
	case "check":
		r := c.n.check(ctx, c)
		return c.answer(r, r.Error)
	case "baseline":
		var p wire.BaselineParams
		if status := c.params(ctx, &p); status != 0 {
			return status
		}
		r := baseline.Reader{FS: c.n.fs, Open: c.n.cfg.Disks}.Read(p)
		r.Packages, r.List = c.n.packageList(p)
		r.Gaps = slices.DeleteFunc(r.Gaps, func(g wire.Gap) bool { return g.Kind == wire.ItemPackages })
		return c.answer(r, r.Error)
	case "health":
		// What happens as the program is started has happened when it looks, on a busy
		// controller too.
		if c.n.cfg.Clock.Sleep(ctx, agentStart) != nil {
			return 137
		}
		r := health.Read(c.n.fs)
		r.Disks = health.Disks(c.n.fs, c.n.smart)
		if c.n.cfg.Module != nil {
			health.Transceivers(c.n.fs, r.PCI, c.n.cfg.Module)
		}
		return c.answer(r, r.Error)
	case "burn", "speed", "throughput":
		return c.runLoad(ctx, command)
	case "infiniband":
		r := infiniband.Read(c.n.fs)
		return c.answer(r, r.Error)
	case "neighbours":
		r := wire.Neighbours{}
		if c.n.cfg.Neighbours != nil {
			r.Neighbours = c.n.cfg.Neighbours()
		}
		return c.answer(r, r.Error)
	case "roce up", "roce apply", "roce check", "network apply", "network check":
		return c.runLinks(ctx, command)
	}
	_, _ = c.Err.Write([]byte("usage: ironrail-agent COMMAND   (on an installed node; ironrail calls it)\n"))
	return 64
}

// runLoad is agentProgram for the commands that load the node.
func (c call) runLoad(ctx context.Context, command string) int {
	switch command {
	case "burn":
		var p wire.BurnParams
		if status := c.params(ctx, &p); status != 0 {
			return status
		}
		r := c.burn(ctx, p)
		return c.answer(r, r.Error)
	case "speed":
		var p wire.SpeedParams
		if status := c.params(ctx, &p); status != 0 {
			return status
		}
		r := speed.Meter{FS: c.n.fs, Machine: machine{c.n}, Lock: c.n.burning.lock}.Measure(ctx, p)
		return c.answer(r, r.Error)
	}
	return c.runThroughput(ctx)
}

// runLinks is agentProgram for the commands about rails and about networks.
func (c call) runLinks(ctx context.Context, command string) int {
	if strings.HasPrefix(command, "network ") {
		return c.runNetwork(ctx, command)
	}
	node := c.n.rails()
	if command == "roce up" {
		r := node.Up(ctx)
		return c.answer(r, r.Error)
	}
	var p wire.RoCEParams
	if status := c.params(ctx, &p); status != 0 {
		return status
	}
	var r wire.RoCEResult
	if command == "roce apply" {
		r = node.Apply(ctx, p)
	} else {
		r = node.Check(p)
	}
	return c.answer(r, r.Error)
}

// runNetwork is agentProgram for the commands about the interfaces of networks.
func (c call) runNetwork(ctx context.Context, command string) int {
	n := c.n
	node := interfaces.Node{FS: n.fs, Root: func() (rootfs.Root, error) { return n.tree, nil }, Link: rails{n.cfg.Kernel, n}.SetLink, Addresses: n.cfg.Kernel.Addresses,
		Run: func(ctx context.Context, argv ...string) ([]byte, error) { return nil, c.runNetplan(ctx, argv) }}
	var p wire.NetworkParams
	if status := c.params(ctx, &p); status != 0 {
		return status
	}
	r := node.Look(p)
	if command == "network apply" {
		r = node.Set(ctx, p)
	}
	return c.answer(r, r.Error)
}

// runNetplan runs the one program that the agent's code for interfaces starts here.
func (c call) runNetplan(ctx context.Context, argv []string) error {
	var said strings.Builder
	inner := call{shell.Command{Argv: argv, Streams: shell.Streams{In: strings.NewReader(""), Out: &said, Err: &said}}, c.n, c.pid}
	if argv[0] != "netplan" || runNetplan(ctx, inner) != 0 {
		return errkind.New(errkind.Refused, "%s: %s", strings.Join(argv, " "), said.String())
	}
	return nil
}

// answer prints the one JSON object.
func (c call) answer(result any, failed *wire.TaskError) int {
	if err := json.NewEncoder(c.Out).Encode(result); err != nil || failed != nil {
		return 1
	}
	return 0
}

// params decodes what a caller gives on the standard input; it returns the exit
// status when that is not JSON.
func (c call) params(ctx context.Context, into any) int {
	b, err := c.all(ctx)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		_, _ = c.Err.Write([]byte("error: stdin: " + err.Error() + "\n"))
		return 64
	}
	return 0
}

// smart reads the log page of a disk.
func (n *node) smart(device string) ([]byte, error) {
	if n.cfg.SMART == nil {
		return nil, errkind.New(errkind.Unsupported, "%s: no disk answers", device)
	}
	return n.cfg.SMART(device)
}

// packageList is what dpkg has, in the agent's words. The packages of the image
// stand in no file of a virtual node.
func (n *node) packageList(p wire.BaselineParams) (string, []wire.Package) {
	have := n.packages()
	var list []wire.Package
	for _, name := range slices.Sorted(maps.Keys(have)) {
		list = append(list, wire.Package{Name: name, Version: have[name]})
	}
	digest := baseline.Digest(list)
	if slices.Contains(p.Known, digest) {
		return digest, nil
	}
	return digest, list
}
