package system

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/ironrail/ironrail/provision/agent/nodecheck"
	"github.com/ironrail/ironrail/provision/agent/roce"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/wire"
	"github.com/ironrail/ironrail/provision/virtual/system/shell"
)

// agentPath is where the install step puts the agent.
const agentPath = "/usr/local/sbin/ironrail-agent"

// rails is the agent's own code for rails, on this node.
func (n *node) rails() roce.Node {
	k := rails{n.cfg.Kernel, n}
	return roce.Node{FS: n.fs, Root: func() (rootfs.Root, error) { return n.tree, nil }, Network: k, RDMA: k}
}

// check is the agent's own look at the node.
func (n *node) check(ctx context.Context, c call) wire.NodeCheck {
	return nodecheck.Checker{
		FS: n.fs, Open: n.cfg.Disks,
		Kernel: func() (string, string, error) { return n.hostname(), n.cfg.Kernel.Release(), nil },
		Systemctl: func(ctx context.Context, args ...string) (string, error) {
			var out strings.Builder
			inner := call{shell.Command{Argv: append([]string{"systemctl"}, args...), Streams: shell.Streams{In: strings.NewReader(""), Out: &out, Err: c.Err}}, n, c.pid}
			systemctl(ctx, inner)
			return out.String(), nil
		},
	}.Check(ctx)
}

// agentProgram is `ironrail-agent`: the agent's code with this node below it.
func agentProgram(ctx context.Context, c call) int {
	answer := func(result any, failed *wire.TaskError) int {
		if err := json.NewEncoder(c.Out).Encode(result); err != nil || failed != nil {
			return 1
		}
		return 0
	}
	node := c.n.rails()
	switch strings.Join(c.Argv[1:], " ") {
	case "check":
		r := c.n.check(ctx, c)
		return answer(r, r.Error)
	case "neighbours":
		r := wire.Neighbours{}
		if c.n.cfg.Neighbours != nil {
			r.Neighbours = c.n.cfg.Neighbours()
		}
		return answer(r, r.Error)
	case "roce up":
		r := node.Up(ctx)
		return answer(r, r.Error)
	case "roce apply", "roce check":
		var p wire.RoCEParams
		b, err := c.all(ctx)
		if err == nil {
			err = json.Unmarshal(b, &p)
		}
		if err != nil {
			_, _ = c.Err.Write([]byte("error: stdin: " + err.Error() + "\n"))
			return 64
		}
		var r wire.RoCEResult
		if c.Argv[2] == "apply" {
			r = node.Apply(ctx, p)
		} else {
			r = node.Check(p)
		}
		return answer(r, r.Error)
	}
	_, _ = c.Err.Write([]byte("usage: ironrail-agent COMMAND   (on an installed node; ironrail calls it)\n"))
	return 64
}
