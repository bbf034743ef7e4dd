// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover/kubernetes"
	"github.com/ironrail/ironrail/provision/handover/slurm"
)

// Schedulers reaches the schedulers that nodes are handed over to.
type Schedulers struct {
	Access
	// Local runs a scheduler's program on this controller and returns its standard
	// output; nil: nobody does.
	Local func(ctx context.Context, argv ...string) ([]byte, error)
	// ClusterCA is the CA, in PEM, of the Kubernetes API server at an endpoint; nil:
	// what the handover says.
	ClusterCA func(endpoint string) string
}

// Programs run the programs of a scheduler where its controller can be asked: on
// the node of the site that it is, else on this controller, which reaches it as
// any client of it does.
func (s Schedulers) Programs(nodes onnode.Nodes) slurm.Programs {
	return func(ctx context.Context, controller string, argv ...string) ([]byte, error) {
		if name, ok := s.nodeAt(controller); ok {
			if nodes == nil {
				return nil, errkind.New(errkind.Unsupported, "%s is asked while a plan is applied only", name)
			}
			return askNode(ctx, nodes, name, argv)
		}
		if s.Local == nil {
			return nil, errkind.New(errkind.Unsupported, "%s cannot be run on this controller", argv[0])
		}
		return s.Local(ctx, argv...)
	}
}

// askNode runs a program of the scheduler on a node of the site. What it says of every
// node of a large site is more than is kept of other outputs.
func askNode(ctx context.Context, nodes onnode.Nodes, node string, argv []string) ([]byte, error) {
	var out capped
	end, err := nodes.Run(ctx, node, onnode.Command{Argv: argv, Stdout: &out})
	switch {
	case err != nil:
		return nil, fmt.Errorf("node %s: %s: %w", node, argv[0], err)
	case end.Exit != 0:
		return out.Bytes(), &onnode.ExitError{Node: node, Argv: argv, Output: end}
	case out.full:
		return nil, errkind.New(errkind.Invalid, "node %s: %s prints more than %d MiB", node, argv[0], localMost>>20)
	}
	return out.Bytes(), nil
}

// Clusters is how Kubernetes clusters are reached. Without nodes no token is
// resolved: what is only planned asks no cluster.
func (s Schedulers) Clusters(nodes onnode.Nodes) kubernetes.Dependencies {
	w := kubernetes.Dependencies{Nodes: nodes, Network: s.Network, CA: s.ClusterCA}
	if nodes != nil {
		w.Secret = s.Secrets.Resolve
	}
	return w
}

// nodeAt finds the node of the site that a controller's name or address is of.
func (s Schedulers) nodeAt(controller string) (string, bool) {
	i := slices.IndexFunc(s.Inv.Nodes, func(n *inventory.Node) bool {
		return controller == n.Name || n.Address.IsValid() && controller == n.Address.String() || s.Inv.Site.Domain != "" && controller == n.Name+"."+s.Inv.Site.Domain
	})
	if i < 0 {
		return "", false
	}
	return s.Inv.Nodes[i].Name, true
}

// Bounds of a program on this controller.
const (
	localPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	localMost = 64 << 20 // bytes that it may print: scontrol says 1.2 KiB of each node
	localEnd  = 5 * time.Second
)

// LocalPrograms runs programs of the operating system, without a shell. Of the
// environment they see where Slurm's configuration lies and nothing else.
func LocalPrograms(environ func(string) (string, bool)) func(context.Context, ...string) ([]byte, error) {
	return func(ctx context.Context, argv ...string) ([]byte, error) {
		path := ""
		for dir := range strings.SplitSeq(localPath, ":") {
			if p, err := exec.LookPath(dir + "/" + argv[0]); err == nil {
				path = p
				break
			}
		}
		if path == "" {
			return nil, errkind.New(errkind.Unsupported, "there is no %s on this controller", argv[0]).
				Do(fmt.Sprintf("Install the program and its configuration here, or give the handover a node of this site as its controller; %s is asked there.", argv[0]))
		}
		cmd := exec.CommandContext(ctx, path, argv[1:]...)
		cmd.Env, cmd.Dir, cmd.WaitDelay = []string{"PATH=" + localPath, "LC_ALL=C"}, "/", localEnd
		if environ != nil {
			if conf, ok := environ("SLURM_CONF"); ok {
				cmd.Env = append(cmd.Env, "SLURM_CONF="+conf)
			}
		}
		var out, errs capped
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		switch {
		case err == nil && out.full:
			return nil, errkind.New(errkind.Invalid, "%s prints more than %d MiB", argv[0], localMost>>20)
		case err == nil:
			return out.Bytes(), nil
		case ctx.Err() != nil:
			return nil, errkind.New(errkind.Timeout, "%s does not end: %w", argv[0], context.Cause(ctx))
		}
		kind := errkind.Unreachable
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			kind = errkind.Internal
		}
		return out.Bytes(), errkind.New(kind, "%s: %w: %s", argv[0], err, strings.TrimSpace(errs.String()))
	}
}

// capped keeps the first localMost bytes that are written to it.
type capped struct {
	bytes.Buffer
	full bool
}

// Write keeps what fits and takes the rest.
func (c *capped) Write(p []byte) (int, error) {
	room := max(0, localMost-c.Len())
	c.full = c.full || len(p) > room
	c.Buffer.Write(p[:min(room, len(p))])
	return len(p), nil
}
