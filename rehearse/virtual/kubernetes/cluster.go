// SPDX-License-Identifier: Apache-2.0

// Package kubernetes is the cluster of a virtual rack: an API server with what a
// hand-over asks of it (nodes, pods and their evictions, bootstrap tokens), over
// TLS with a CA of its own, and the registration of kubelets. It schedules nothing:
// a pod runs where it was put, until it is evicted. What it does not know it
// refuses, as an API server does with fieldValidation=Strict. Its test holds it
// beside a real kube-apiserver, where there is one.
package kubernetes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
)

// Config of a Cluster.
type Config struct {
	Endpoint string      // host and port where it is reached
	Token    string      // of the account that hands nodes over
	Clock    clock.Clock // nil: the wall's
	// Runs reports whether the kubelet of a node runs; nil: each does, forever.
	Runs func(node string) bool
}

// readyAfter is how long the network plug-in of a node takes until its kubelet is
// ready: a pull of one image and its start.
const readyAfter = 20 * time.Second

// Cluster is an API server. It is safe for concurrent use and never blocks.
type Cluster struct {
	cfg  Config
	keys keys

	mu      sync.Mutex // guards what follows
	nodes   map[string]*node
	pods    []*Pod
	tokens  map[string]bootstrap // by id
	version int
	silent  bool
	changes []string
}

type node struct {
	version       int
	labels        map[string]string
	annotations   map[string]string
	taints        []Taint
	unschedulable bool
	joined        time.Time
}

// Taint is a taint of a node.
type Taint struct {
	Key    string `json:"key" yaml:"key"`
	Value  string `json:"value,omitempty" yaml:"value"`
	Effect string `json:"effect" yaml:"effect"`
}

// Pod is a pod that somebody runs.
type Pod struct {
	Namespace, Name, Node string
	Owner                 string // kind of its controller; "": none
	Refusals              int    // evictions that its disruption budget refuses before it allows one
}

type bootstrap struct {
	secret string
	until  time.Time
}

// New makes a cluster without nodes.
func New(c Config) (*Cluster, error) {
	if c.Clock == nil {
		c.Clock = clock.Wall{}
	}
	k, err := newKeys(c.Endpoint, time.Now())
	if err != nil {
		return nil, err
	}
	return &Cluster{cfg: c, keys: k, nodes: map[string]*node{}, tokens: map[string]bootstrap{}}, nil
}

// CA is the cluster's CA in PEM.
func (c *Cluster) CA() string { return string(c.keys.ca) }

// Submit runs a pod.
func (c *Cluster) Submit(p Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods = append(c.pods, &p)
}

// End ends a pod.
func (c *Cluster) End(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(namespace, name)
}

func (c *Cluster) remove(namespace, name string) {
	c.pods = slices.DeleteFunc(c.pods, func(p *Pod) bool { return p.Namespace == namespace && p.Name == name })
}

// Silence makes the API server answer 503, or again as ever.
func (c *Cluster) Silence(silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = silent
}

// Changes lists what was changed, in order, such as "n1 join" and "n1 uncordon".
func (c *Cluster) Changes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.changes)
}

// Schedulable lists the nodes that a pod without tolerations may be put on.
func (c *Cluster) Schedulable() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.nodes {
		keeps := slices.ContainsFunc(n.taints, func(t Taint) bool { return t.Effect != "PreferNoSchedule" })
		if ready, _ := c.ready(name, n); ready && !n.unschedulable && !keeps {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Tokens is how many bootstrap tokens there are.
func (c *Cluster) Tokens() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tokens)
}

// Join is what the kubelet of a node does with a bootstrap token: it gets a
// certificate and registers its node with taints.
func (c *Cluster) Join(token, name string, taints []Taint) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, key, _ := strings.Cut(token, ".")
	t, ok := c.tokens[id]
	switch now := time.Now(); { // the time of day is the controller's, however fast hardware is
	case c.silent:
		return fmt.Errorf("the API server %s does not answer", c.cfg.Endpoint)
	case !ok || t.secret != key || now.After(t.until):
		return fmt.Errorf("Unauthorized")
	case c.nodes[name] != nil:
		if ready, _ := c.ready(name, c.nodes[name]); ready {
			return fmt.Errorf("a Node with name %q and status \"Ready\" already exists in the cluster", name)
		}
	}
	n := &node{labels: map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}, annotations: map[string]string{}, taints: slices.Clone(taints), joined: c.cfg.Clock.Now()}
	c.nodes[name] = n
	c.change(n, name+" join")
	return nil
}

// change gives an object a new version and remembers why.
func (c *Cluster) change(n *node, why string) {
	c.version++
	n.version = c.version
	c.changes = append(c.changes, why)
}

// ready is the Ready condition of a node.
func (c *Cluster) ready(name string, n *node) (bool, map[string]string) {
	cond := map[string]string{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
	switch {
	case c.cfg.Runs != nil && !c.cfg.Runs(name):
		cond = map[string]string{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
	case c.cfg.Clock.Now().Before(n.joined.Add(readyAfter)):
		cond = map[string]string{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "container runtime network not ready: cni plugin not initialized"}
	}
	return cond["status"] == "True", cond
}

// object is a node as the API shows it.
func (c *Cluster) object(name string, n *node) map[string]any {
	spec := map[string]any{}
	if len(n.taints) > 0 {
		spec["taints"] = n.taints
	}
	if n.unschedulable {
		spec["unschedulable"] = true
	}
	_, cond := c.ready(name, n)
	return map[string]any{"apiVersion": "v1", "kind": "Node", "spec": spec,
		"metadata": map[string]any{"name": name, "uid": "node-" + name, "resourceVersion": strconv.Itoa(n.version), "labels": n.labels, "annotations": n.annotations},
		"status":   map[string]any{"conditions": []any{cond}}}
}

// object is a pod as the API shows it.
func (p *Pod) object() map[string]any {
	meta := map[string]any{"name": p.Name, "namespace": p.Namespace, "uid": "pod-" + p.Name}
	if p.Owner != "" {
		meta["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": p.Owner, "name": p.Name, "controller": true}}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": map[string]any{"nodeName": p.Node}, "status": map[string]any{"phase": "Running"}}
}
