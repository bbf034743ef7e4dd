// SPDX-License-Identifier: Apache-2.0

// Package kubernetes is the handover kind "kubernetes": accepted nodes join a
// cluster with a token of their own hour, get labels of where they are, and lose
// the taint that kept pods off; nodes that leave are cordoned, and their pods
// evicted as disruption budgets allow. A node that was never accepted is not in the
// cluster. Source: Kubernetes documentation, "kubeadm join", "TLS bootstrapping",
// "Safely Drain a Node", "API-initiated Eviction".
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
	"github.com/ironrail/ironrail/provision/handover/place"
)

const (
	defaultTimeout = 15 * time.Minute
	atOnce         = 16 // nodes that are worked on
)

// Dependencies is what the kind reaches.
type Dependencies struct {
	Nodes   onnode.Nodes
	Network network.Network                        // nil: the operating system's
	Secret  func(secret.Ref) (secret.Value, error) // resolves the token of a handover
	// CA is the CA of the API server at an endpoint; nil: each handover says its own.
	CA func(endpoint string) string
}

// Kubernetes hands nodes to clusters. Its zero value can check and plan.
type Kubernetes struct{ deps Dependencies }

// New returns the kind.
func New(w Dependencies) *Kubernetes { return &Kubernetes{w} }

var _ handover.Scheduler = (*Kubernetes)(nil)

// endpointOf is host and port of the API server.
func endpointOf(h *inventory.Handover) string {
	return strings.TrimSuffix(strings.TrimPrefix(h.Text("endpoint"), "https://"), "/")
}

// timeoutOf bounds the join of a node, and a drain.
func timeoutOf(h *inventory.Handover) time.Duration {
	if d, err := unit.ParseDuration(h.Text("timeout")); err == nil && d > 0 {
		return d
	}
	return defaultTimeout
}

// tokenOf returns the reference of the token.
func tokenOf(h *inventory.Handover) secret.Ref {
	v, ok := inventory.Attribute(h.Value, "token")
	if !ok {
		return ""
	}
	ref, _ := inventory.SecretRef(v)
	return ref
}

// Check implements handover.Kind. What is wrong with the block itself is said when
// the site is loaded; a plan needs what a look at the files does not.
func (*Kubernetes) Check(h *inventory.Handover, _ []*inventory.Node) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, need := range []struct{ name, given, what string }{
		{"token", string(tokenOf(h)), "a bearer token of an account of the cluster: token = secret(\"env:KUBE_TOKEN\")"},
		{"ca", h.Text("ca"), "the CA of the API server: ca = file(\"ca.crt\"), or the pin of its key, ca = \"sha256:...\""},
	} {
		if need.given == "" {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprintf("Handover has no %s", need.name), Subject: h.Decl.Ptr(),
				Detail: fmt.Sprintf("Handover %q of kind \"kubernetes\" needs %s.", h.Name, need.what)})
		}
	}
	return diags
}

// Inputs implements handover.Kind.
func (*Kubernetes) Inputs(inv *inventory.Inventory, h *inventory.Handover, nodes []*inventory.Node) []plan.Input {
	p := place.Of(inv, nodes)
	var places strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&places, "%s %s %s %s\n", n.Name, p.Leaf(n), p.Above(n), n.Domain)
	}
	at := func(name string) plan.SourceRange { return stage.Source(h.Place(name)) }
	return []plan.Input{{Name: "endpoint", Value: endpointOf(h), Decl: at("endpoint")}, {Name: "labels", Value: joinLabels(h.Entries("labels")), Decl: at("labels")},
		{Name: "taints", Value: strings.Join(h.Texts("taints"), " "), Decl: at("taints")}, {Name: "places", Value: digestOf(places.String()), Decl: stage.Source(h.Decl)}}
}

// DrainLimit implements handover.Kind.
func (*Kubernetes) DrainLimit(h *inventory.Handover) time.Duration { return timeoutOf(h) }

// connect makes a client of the cluster; close it.
func (k *Kubernetes) connect(ctx context.Context, h *inventory.Handover) (*api.Client, error) {
	if k.deps.Secret == nil {
		return nil, errkind.New(errkind.Unsupported, "the API server %s is asked while a plan is applied only", endpointOf(h))
	}
	t, err := k.deps.Secret(tokenOf(h))
	if err != nil {
		return nil, errkind.New(errkind.Auth, "token of handover %s: %w", h.Name, err).Do("Give ironrail the token, and apply again.")
	}
	ca := h.Text("ca")
	if k.deps.CA != nil {
		ca = k.deps.CA(endpointOf(h))
	}
	return api.New(ctx, api.Config{Endpoint: endpointOf(h), CA: ca, Token: t, Network: k.deps.Network})
}

// readCluster returns the nodes of a cluster by name.
func readCluster(ctx context.Context, c *api.Client) (map[string]*api.Node, error) {
	list, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	by := make(map[string]*api.Node, len(list))
	for i := range list {
		by[list[i].Name] = &list[i]
	}
	return by, nil
}

// Observe implements handover.Kind.
func (k *Kubernetes) Observe(ctx context.Context, _ stage.Run, t handover.Target) (stage.Observation, error) {
	c, err := k.connect(ctx, t.Handover)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	defer c.Close()
	nodes, err := readCluster(ctx, c)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	wants := wantedNodes(t)
	var open []string
	for _, m := range t.Members {
		if why := describeDifference(nodes[m.Node.Name], m, wants[m.Node.Name]); why != "" {
			open = append(open, m.Node.Name+" "+why)
		}
	}
	if len(open) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(open, ", ")}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: "every node is in the cluster as it should be"}, nil
}

// describeDifference says what is to do with a member; "" for nothing.
func describeDifference(n *api.Node, m handover.Member, w want) string {
	switch {
	case n == nil && m.InService:
		return "is not in the cluster"
	case n == nil:
		return ""
	}
	if ready, why := n.Ready(); m.InService && !ready {
		return "is not ready (" + why + ")"
	}
	if changes, _ := reconcileNode(n, w); len(changes) > 0 {
		return strings.Join(changes, ", ")
	}
	return ""
}

// Apply implements handover.Kind. A node that cannot be handed over does not keep
// the others from it.
func (k *Kubernetes) Apply(ctx context.Context, run stage.Run, t handover.Target) error {
	c, err := k.connect(ctx, t.Handover)
	if err != nil {
		return err
	}
	defer c.Close()
	nodes, err := readCluster(ctx, c)
	if err != nil {
		return err
	}
	j := &joiner{kind: k, client: c, run: run, target: t}
	defer j.end(ctx)
	wants := wantedNodes(t)
	errs := make([]error, len(t.Members))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, m := range t.Members {
		group.Go(func() error {
			errs[i] = j.hand(ctx, m, nodes[m.Node.Name], wants[m.Node.Name])
			return nil
		})
	}
	_ = group.Wait() // errors are in errs
	return joinErrors(t, errs)
}

// joinErrors returns one error of those of the members.
func joinErrors(t handover.Target, errs []error) error {
	var failed []string
	var first error
	for i, err := range errs {
		if err != nil {
			failed = append(failed, t.Members[i].Node.Name)
			if first == nil {
				first = err
			}
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("handover %s: %d nodes could not be handed over (%s): %w", t.Name, len(failed), strings.Join(failed, ", "), first)
}

// hand brings one member to where it should be.
func (j *joiner) hand(ctx context.Context, m handover.Member, n *api.Node, w want) error {
	if !m.InService {
		if n == nil {
			return nil
		}
		return settleNode(ctx, j.run, j.client, j.target, m.Node.Name, w)
	}
	ready := false
	if n != nil {
		ready, _ = n.Ready()
	}
	if !ready {
		if err := j.join(ctx, m.Node, n != nil, w); err != nil {
			return err
		}
	}
	return settleNode(ctx, j.run, j.client, j.target, m.Node.Name, w)
}

// settleNode makes a node what it should be, as one effect on what it is now (its UID and
// version name it); with nothing to change there is none. Somebody else's change in the meantime is looked at again.
func settleNode(ctx context.Context, run stage.Run, c *api.Client, t handover.Target, name string, w want) error {
	n, err := c.Node(ctx, name)
	if err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	changes, _ := reconcileNode(&n, w)
	if len(changes) == 0 {
		return nil
	}
	return run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/handover.%s/node-%s-%s", name, t.Name, n.UID, n.ResourceVersion), Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("%s in cluster %s: %s", name, t.Name, strings.Join(changes, ", ")),
		Do:   func(ctx context.Context) error { return patchNode(ctx, run, c, name, w) }})
}

// patchTries is how often a node is patched that others change as well.
const patchTries = 5

func patchNode(ctx context.Context, run stage.Run, c *api.Client, name string, w want) error {
	var last error
	for range patchTries {
		n, err := c.Node(ctx, name)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		changes, body := reconcileNode(&n, w)
		if len(changes) == 0 {
			return nil
		}
		if last = c.PatchNode(ctx, name, body); !api.IsConflict(last) {
			break
		}
		if err := run.Clock().Sleep(ctx, time.Second); err != nil {
			return errors.Join(last, err)
		}
	}
	if last != nil {
		return fmt.Errorf("node %s: %w", name, last)
	}
	return nil
}

// findMember finds a member by name.
func findMember(t handover.Target, name string) (handover.Member, error) {
	i := slices.IndexFunc(t.Members, func(m handover.Member) bool { return m.Node.Name == name })
	if i < 0 {
		return handover.Member{}, errkind.New(errkind.NotFound, "node %s does not belong to handover %s", name, t.Name)
	}
	return t.Members[i], nil
}
