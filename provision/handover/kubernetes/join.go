// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
)

const (
	tokenLife = time.Hour       // of a bootstrap token; it is removed before, when the step ends
	readyPoll = 5 * time.Second // between looks whether a node is ready
	undoWait  = time.Minute
)

// Files of a node.
const (
	joinFolder  = "/etc/kubernetes/ironrail"
	joinFile    = joinFolder + "/join.yaml"      // with the token; it is removed after the join
	clusterFile = joinFolder + "/discovery.conf" // which API server, and its CA
	kubeletConf = "/etc/kubernetes/kubelet.conf" // there when the node has joined
)

// joiner is one run of Apply.
type joiner struct {
	kind   *Kubernetes
	client *api.Client
	run    stage.Run
	target handover.Target

	mu    sync.Mutex // guards token
	token *api.Token // made with the first node that joins; nil: none joined
}

// bootstrap is the token of this run.
func (j *joiner) bootstrap(ctx context.Context) (api.Token, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.token != nil {
		return *j.token, nil
	}
	t, err := j.client.NewToken(ctx, j.run.Clock().Now().Add(tokenLife))
	if err != nil {
		return t, fmt.Errorf("make a bootstrap token: %w", err)
	}
	j.token = &t
	return t, nil
}

// end removes the token, also when the run was interrupted; it would end by
// itself.
func (j *joiner) end(ctx context.Context) {
	if j.token == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWait)
	defer cancel()
	if err := j.client.EndToken(ctx, *j.token); err != nil {
		j.run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the bootstrap token %s could not be removed from cluster %s, and ends within %s: %v", j.token.ID, j.target.Name, tokenLife, err)})
	}
}

// join makes the kubelet of a node a member, unless it is one, and waits until it
// is ready. listed: the cluster has a node of the name.
func (j *joiner) join(ctx context.Context, n *inventory.Node, listed bool, w want) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeoutOf(j.target.Handover), errkind.New(errkind.Timeout, "node %s did not join within %s", n.Name, timeoutOf(j.target.Handover)))
	defer cancel()
	nodes := j.kind.deps.Nodes
	out, err := nodes.Run(ctx, n.Name, onnode.Command{Argv: []string{"test", "-s", kubeletConf}})
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	if out.Exit != 0 || !listed {
		err := handover.DoEffect(ctx, j.run, subject.OfNode(n.Name), stage.Effect{Key: fmt.Sprintf("%s/handover.%s/join", n.Name, j.target.Name), Kind: plan.Config, Repeatable: true,
			Does:  fmt.Sprintf("join %s to cluster %s", n.Name, j.target.Name),
			Probe: func(ctx context.Context) (stage.Probe, string, error) { return j.joined(ctx, n) },
			Do:    func(ctx context.Context) error { return j.enter(ctx, n, listed, out.Exit == 0, w) }})
		if err != nil {
			return err
		}
	}
	return j.ready(ctx, n.Name)
}

// joined looks whether a node is a member: it has the certificate of one, and the
// cluster lists it.
func (j *joiner) joined(ctx context.Context, n *inventory.Node) (stage.Probe, string, error) {
	out, err := j.kind.deps.Nodes.Run(ctx, n.Name, onnode.Command{Argv: []string{"test", "-s", kubeletConf}})
	if err != nil {
		return stage.Doubt, "", fmt.Errorf("node %s: %w", n.Name, err)
	}
	if out.Exit != 0 {
		return stage.NotDone, "it has no " + kubeletConf, nil
	}
	switch _, err := j.client.Node(ctx, n.Name); {
	case api.NotFound(err):
		return stage.NotDone, "the cluster has no node of its name", nil
	case err != nil:
		return stage.Doubt, "", err
	}
	return stage.Done, "it has " + kubeletConf + ", and the cluster lists it", nil
}

// enter gives the node what it joins with. What is left of an earlier life goes
// first: the node of that name in the cluster, and the kubelet's old certificate.
func (j *joiner) enter(ctx context.Context, n *inventory.Node, listed, stale bool, w want) error {
	if listed {
		if err := j.client.DeleteNode(ctx, n.Name); err != nil {
			return err
		}
	}
	t, err := j.bootstrap(ctx)
	if err != nil {
		return err
	}
	nodes := j.kind.deps.Nodes
	program, err := j.program(ctx, n.Name)
	if err != nil {
		return err
	}
	if program == kubelet {
		return j.enterByKubelet(ctx, n, t, w)
	}
	if stale {
		if err := onnode.Exec(ctx, nodes, n.Name, kubeadm, "reset", "--force"); err != nil {
			return err
		}
	}
	return j.enterByKubeadm(ctx, n, t, w)
}

// Programs that a node may have.
const (
	kubeadm = "kubeadm"
	kubelet = "kubelet"
)

// program is what a node joins by: kubeadm, else its kubelet alone.
func (j *joiner) program(ctx context.Context, node string) (string, error) {
	for _, p := range []string{kubeadm, kubelet} {
		out, err := j.kind.deps.Nodes.Run(ctx, node, onnode.Command{Argv: []string{p, "--version"}})
		if p == kubeadm {
			out, err = j.kind.deps.Nodes.Run(ctx, node, onnode.Command{Argv: []string{p, "version", "-o", "short"}})
		}
		if err != nil {
			return "", fmt.Errorf("node %s: %w", node, err)
		}
		if out.Exit == 0 {
			return p, nil
		}
	}
	return "", errkind.New(errkind.Unsupported, "node %s has neither kubeadm nor a kubelet", node).
		Do("Add kubeadm, kubelet and a container runtime to the packages of its image, install the node again, then apply.")
}

// enterByKubeadm runs kubeadm join with files that it reads; neither the token nor
// anything else secret is in an argument.
func (j *joiner) enterByKubeadm(ctx context.Context, n *inventory.Node, t api.Token, w want) error {
	nodes := j.kind.deps.Nodes
	out, err := onnode.Do(ctx, nodes, n.Name, kubeadm, "version", "-o", "short")
	if err != nil {
		return err
	}
	if err := onnode.Write(ctx, nodes, n.Name, clusterFile, 0o600, writeDiscovery(j.client)); err != nil {
		return err
	}
	defer j.forget(ctx, n.Name, joinFile)
	if err := onnode.Write(ctx, nodes, n.Name, joinFile, 0o600, joinConfiguration(strings.TrimSpace(string(out)), n, t, w)); err != nil {
		return err
	}
	if err := onnode.Exec(ctx, nodes, n.Name, kubeadm, "join", "--config", joinFile); err != nil {
		return errkind.New(errkind.Refused, "%w", err).Do("Run `kubeadm reset` on the node and look at `journalctl -u kubelet`; then apply again.")
	}
	return nil
}

// forget removes files of a node, also after an interruption.
func (j *joiner) forget(ctx context.Context, node string, files ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWait)
	defer cancel()
	if err := onnode.Exec(ctx, j.kind.deps.Nodes, node, append([]string{"rm", "-f", "--"}, files...)...); err != nil {
		j.run.Emit(event.Event{Type: event.Note, Node: node, Text: fmt.Sprintf("%s could not be removed; its token ends within %s: %v", files[0], tokenLife, err)})
	}
}

// enterByKubelet writes what a kubelet bootstraps itself with, and starts it.
// Source: Kubernetes documentation, "TLS bootstrapping".
func (j *joiner) enterByKubelet(ctx context.Context, n *inventory.Node, t api.Token, w want) error {
	nodes := j.kind.deps.Nodes
	dns, err := j.client.ClusterDNS(ctx)
	if err != nil {
		return err
	}
	defer j.forget(ctx, n.Name, bootstrapFile)
	for _, f := range kubeletFiles(j.client, n, t, dns, w) {
		if err := onnode.Write(ctx, nodes, n.Name, f.name, f.mode, f.content); err != nil {
			return err
		}
	}
	for _, argv := range [][]string{{"rm", "-f", "--", kubeletConf}, {"systemctl", "daemon-reload"}, {"systemctl", "enable", kubelet}, {"systemctl", "restart", kubelet}} {
		if err := onnode.Exec(ctx, nodes, n.Name, argv...); err != nil {
			return err
		}
	}
	return j.ready(ctx, n.Name) // the token is needed until then
}

// ready waits until the kubelet of a node says that it is.
func (j *joiner) ready(ctx context.Context, name string) error {
	why := "it is not in the cluster"
	for {
		n, err := j.client.Node(ctx, name)
		switch {
		case err == nil:
			is, reason := n.Ready()
			if is {
				return nil
			}
			why = reason
		case !api.NotFound(err):
			return fmt.Errorf("node %s: %w", name, err)
		}
		if err := j.run.Clock().Sleep(ctx, readyPoll); err != nil {
			if cause := context.Cause(ctx); errkind.Of(cause) == errkind.Timeout {
				return errkind.New(errkind.Timeout, "%w: %s", cause, why).Do("Look at `journalctl -u kubelet` on the node and at the cluster's network plug-in; then apply again.")
			}
			return context.Cause(ctx)
		}
	}
}
