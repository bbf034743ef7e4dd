// SPDX-License-Identifier: Apache-2.0

// Package kubernetes_test tries the handover to Kubernetes on the virtual rack's API
// server, and on a real kube-apiserver where there is one.
package kubernetes_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"go.yaml.in/yaml/v3"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/kubernetes"
	virtual "github.com/ironrail/ironrail/rehearse/virtual/kubernetes"
)

// peer is a cluster to hand nodes to, with what the tests do to it beside that.
type peer interface {
	reach() (endpoint, ca, token string)
	join(token, node string, taints []virtual.Taint) error // as a kubelet
	submit(p virtual.Pod)
	schedulable() []string
	tokens() int
	stop(node string) // its kubelet says no more
	start(node string)
	cordon(node string) // by somebody else, who also puts a label and a taint on it
}

// TestHandOver runs the whole life of two nodes against the virtual API server.
func TestHandOver(t *testing.T) {
	t.Parallel()
	newWard(t, startVirtual(t)).wholeLife()
}

// TestPeerHandOver does the same against a real kube-apiserver.
func TestPeerHandOver(t *testing.T) {
	t.Parallel()
	newWard(t, startReal(t)).wholeLife()
}

func (w *ward) wholeLife() {
	w.t.Helper()
	w.joins()
	w.leavesAndReturns()
	w.drains()
	w.isReinstalled()
	w.retires()
}

// ward is a site of two nodes with a cluster.
type ward struct {
	t     *testing.T
	peer  peer
	nodes *onnodetest.Nodes
	run   *onnodetest.Run
	kind  *kubernetes.Kubernetes
	in    map[string]bool
	inv   *inventory.Inventory
	h     *inventory.Handover
}

func newWard(t *testing.T, p peer) *ward {
	t.Helper()
	w := &ward{t: t, peer: p, run: onnodetest.NewRun(), in: map[string]bool{"n1": true, "n2": true}}
	w.run.Now = time.Now()
	w.nodes = &onnodetest.Nodes{Rules: []onnodetest.Rule{w.node}}
	endpoint, ca, token := p.reach()
	block, _ := pem.Decode([]byte(ca))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, real := p.(*realPeer); !real { // by the pin of its key, as kubeadm publishes the CA
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		ca = "sha256:" + hex.EncodeToString(sum[:])
	}
	w.h = handoverBlock(endpoint, ca)
	w.inv = &inventory.Inventory{Handovers: []*inventory.Handover{w.h}}
	for i, name := range []string{"n1", "n2"} {
		w.inv.Nodes = append(w.inv.Nodes, &inventory.Node{Name: name, Rack: &inventory.Rack{Name: "r0" + name[1:]}, Domain: "nvl1", Handover: w.h, Address: netip.AddrFrom4([4]byte{10, 77, 0, byte(11 + i)})})
	}
	w.kind = kubernetes.New(kubernetes.Dependencies{Nodes: w.nodes, Secret: func(secret.Ref) (secret.Value, error) { return secret.NewValue(token), nil }})
	return w
}

func handoverBlock(endpoint, ca string) *inventory.Handover {
	return &inventory.Handover{Block: inventory.Block{Kind: "kubernetes", Name: "prod", Decl: hcl.Range{Filename: "site.hcl"}, Value: cty.ObjectVal(map[string]cty.Value{
		"endpoint": cty.StringVal("https://" + endpoint), "ca": cty.StringVal(ca), "timeout": cty.StringVal("20min"),
		"labels": cty.ObjectVal(map[string]cty.Value{"example.com/pool": cty.StringVal("gpu")}),
		"taints": cty.TupleVal([]cty.Value{cty.StringVal("nvidia.com/gpu=present:NoSchedule")})})}}
}

// node is an installed node with kubeadm.
func (w *ward) node(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
	const conf = "/etc/kubernetes/kubelet.conf"
	switch line := c.Line(); {
	case line == "test -s "+conf:
		if b, _ := w.nodes.File(c.Node, conf); len(b) == 0 {
			return onnode.Output{Exit: 1}, nil, true
		}
		return onnode.Output{}, nil, true
	case line == "kubeadm version -o short":
		return onnode.Output{Stdout: []byte("v1.34.1\n")}, nil, true
	case line == "kubeadm reset --force":
		w.nodes.Put(c.Node, conf, nil)
		return onnode.Output{}, nil, true
	case strings.HasPrefix(line, "rm -f -- "):
		w.nodes.Put(c.Node, c.Argv[3], nil)
		return onnode.Output{}, nil, true
	case line == "kubeadm join --config /etc/kubernetes/ironrail/join.yaml":
		if err := w.kubeadm(c.Node); err != nil {
			return onnode.Output{Stderr: []byte(err.Error()), Exit: 1}, nil, true
		}
		w.nodes.Put(c.Node, conf, []byte("a certificate"))
		return onnode.Output{}, nil, true
	}
	return onnode.Output{}, nil, false
}

// kubeadm joins as the files of a node say.
func (w *ward) kubeadm(node string) error {
	text, _ := w.nodes.File(node, "/etc/kubernetes/ironrail/join.yaml")
	var c struct {
		APIVersion string `yaml:"apiVersion"`
		Discovery  struct {
			File struct {
				Path string `yaml:"kubeConfigPath"`
			} `yaml:"file"`
			Token string `yaml:"tlsBootstrapToken"`
		} `yaml:"discovery"`
		Node struct {
			Name   string          `yaml:"name"`
			Taints []virtual.Taint `yaml:"taints"`
		} `yaml:"nodeRegistration"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return err
	}
	if d, ok := w.nodes.File(node, c.Discovery.File.Path); !ok || !strings.Contains(string(d), "certificate-authority-data: ") || c.APIVersion != "kubeadm.k8s.io/v1beta4" {
		return errors.New("no discovery file, or not for this kubeadm")
	}
	return w.peer.join(c.Discovery.Token, c.Node.Name, c.Node.Taints)
}

func (w *ward) target() handover.Target {
	t := handover.Target{Handover: w.h, Inventory: w.inv}
	for _, n := range w.inv.Nodes {
		t.Members = append(t.Members, handover.Member{Node: n, InService: w.in[n.Name], Known: true, Reason: "is being changed"})
	}
	return t
}

func (w *ward) apply(schedulable ...string) {
	w.t.Helper()
	if err := w.kind.Apply(w.t.Context(), w.run, w.target()); err != nil {
		w.t.Fatal(err)
	}
	w.conforms()
	if got := w.peer.schedulable(); !slices.Equal(got, schedulable) {
		w.t.Errorf("pods may be put on %v, want %v", got, schedulable)
	}
}

func (w *ward) conforms() {
	w.t.Helper()
	if o, err := w.kind.Observe(w.t.Context(), w.run, w.target()); err != nil || o.State != stage.Conforms {
		w.t.Errorf("observed %+v, %v", o, err)
	}
}

// joins: nothing is there, then both nodes are, with labels, without the taint, and
// no token is left anywhere.
func (w *ward) joins() {
	t := w.t
	t.Helper()
	if o, err := w.kind.Observe(t.Context(), w.run, w.target()); err != nil || o.State != stage.Differs || !strings.Contains(o.Evidence, "n1 is not in the cluster") {
		t.Errorf("before: %+v, %v", o, err)
	}
	w.apply() // tainted by the site: nobody's pods without a toleration
	if w.peer.tokens() != 0 {
		t.Error("a bootstrap token is left")
	}
	for _, c := range w.nodes.Calls("") {
		if c.Argv[0] != "sh" && strings.Contains(c.Line(), ".") && tokenForm.MatchString(c.Line()) {
			t.Errorf("a token is in %q", c.Line())
		}
	}
	if b, _ := w.nodes.File("n1", "/etc/kubernetes/ironrail/join.yaml"); len(b) > 0 {
		t.Error("the file with the token is left")
	}
	n := show(t, w.peer, "n1")
	for key, want := range map[string]string{"ironrail.dev/rack": "r01", "ironrail.dev/nvlink-domain": "nvl1", "example.com/pool": "gpu"} {
		if n.Labels[key] != want {
			t.Errorf("label %s is %q", key, n.Labels[key])
		}
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0] != (virtual.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: "NoSchedule"}) {
		t.Errorf("taints %+v", n.Spec.Taints)
	}
	w.h = handoverBlock(strings.TrimPrefix(w.h.Text("endpoint"), "https://"), w.h.Text("ca"))
	v := w.h.Value.AsValueMap()
	delete(v, "taints")
	v["labels"] = cty.ObjectVal(map[string]cty.Value{"example.com/hall": cty.StringVal("a")})
	w.h.Value = cty.ObjectVal(v)
	w.apply("n1", "n2") // what the site does not say any more is gone
	if n := show(t, w.peer, "n1"); n.Labels["example.com/pool"] != "" || n.Labels["example.com/hall"] != "a" {
		t.Errorf("labels %v", n.Labels)
	}
}

// leavesAndReturns: a node that is out of service gets no pods; what somebody else
// did to it stays.
func (w *ward) leavesAndReturns() {
	t := w.t
	t.Helper()
	w.in["n2"] = false
	w.apply("n1")
	if n := show(t, w.peer, "n2"); !n.Spec.Unschedulable || !slices.ContainsFunc(n.Spec.Taints, func(t virtual.Taint) bool { return t.Key == "ironrail.dev/unaccepted" }) {
		t.Errorf("out of service: %+v", n.Spec)
	}
	w.in["n2"] = true
	w.apply("n1", "n2")
	w.peer.cordon("n1")
	w.apply("n2")
	if n := show(t, w.peer, "n1"); !n.Spec.Unschedulable || n.Labels["kept"] != "yes" || len(n.Spec.Taints) < 1 || !slices.ContainsFunc(n.Spec.Taints, func(t virtual.Taint) bool { return t.Key == "theirs" }) {
		t.Errorf("somebody else's: %+v, labels %v", n.Spec, n.Labels)
	}
	admin(t, w.peer, "PATCH", "/api/v1/nodes/n1", `{"spec":{"unschedulable":false,"taints":[]}}`)
	w.apply("n1", "n2")
}

// drains: jobs are reported, what can move is evicted as its budget allows, and
// daemons stay.
func (w *ward) drains() {
	t := w.t
	t.Helper()
	for _, p := range []virtual.Pod{{Name: "train", Owner: "Job"}, {Name: "web", Owner: "ReplicaSet", Refusals: 2}, {Name: "agent", Owner: "DaemonSet"}, {Name: "bare"}} {
		p.Namespace, p.Node = "default", "n1"
		w.peer.submit(p)
	}
	jobs, err := w.kind.Jobs(t.Context(), w.target(), "n1")
	if err != nil || len(jobs) != 2 || jobs[0].ID != "default/bare" && jobs[0].ID != "default/train" {
		t.Errorf("jobs %+v: %v", jobs, err)
	}
	if all, err := w.kind.AllJobs(t.Context(), w.target()); err != nil || len(all) != 1 || !slices.Equal(all["n1"].Jobs, jobs) {
		t.Errorf("jobs of all nodes %+v: %v", all, err)
	}
	w.in["n1"] = false
	shut, err := w.kind.Shut(t.Context(), w.run, w.target(), "n1", "is being changed")
	if err != nil || !shut || !slices.Equal(w.peer.schedulable(), []string{"n2"}) {
		t.Errorf("shut: %v %v, schedulable %v", shut, err, w.peer.schedulable())
	}
	if err := w.kind.Open(t.Context(), w.run, w.target(), "n1"); err != nil || len(w.peer.schedulable()) != 2 {
		t.Errorf("open: %v, schedulable %v", err, w.peer.schedulable())
	}
	if err := w.kind.Drain(t.Context(), w.run, w.target(), "n1"); err != nil {
		t.Fatal(err)
	}
	if left := pods(t, w.peer, "n1"); !slices.Equal(left, []string{"agent"}) {
		t.Errorf("left on n1: %v", left)
	}
	w.peer.submit(virtual.Pod{Namespace: "default", Name: "unevictable", Node: "n1", Owner: "ReplicaSet", Refusals: 1 << 30})
	if err := w.kind.Drain(t.Context(), w.run, w.target(), "n1"); errkind.Of(err) != errkind.Timeout || errkind.Action(err) == "" || !strings.Contains(err.Error(), "1 pods are on n1 after 20m") {
		t.Errorf("a budget that never allows: %v", err)
	}
	admin(t, w.peer, "DELETE", "/api/v1/namespaces/default/pods/unevictable?gracePeriodSeconds=0", "")
	w.in["n1"] = true
	w.apply("n1", "n2")
}

// isReinstalled: the disk is new, so that the node joins once more.
func (w *ward) isReinstalled() {
	w.t.Helper()
	before := show(w.t, w.peer, "n2").UID
	w.peer.stop("n2")
	w.nodes.Put("n2", "/etc/kubernetes/kubelet.conf", nil)
	if o, _ := w.kind.Observe(w.t.Context(), w.run, w.target()); o.State != stage.Differs || !strings.Contains(o.Evidence, "n2 is not ready") {
		w.t.Errorf("erased: %+v", o)
	}
	w.peer.start("n2")
	admin(w.t, w.peer, "DELETE", "/api/v1/nodes/n2", "") // the lease of the old kubelet is over
	w.apply("n1", "n2")
	if _, real := w.peer.(*realPeer); real && show(w.t, w.peer, "n2").UID == before {
		w.t.Error("n2 is the old node")
	}
}

// retires: a node that left the site leaves the cluster.
func (w *ward) retires() {
	w.t.Helper()
	w.in["n2"] = false
	w.inv.Nodes[1].Retired = true
	for range 2 { // the second time there is nothing to do
		if err := w.kind.Drain(w.t.Context(), w.run, w.target(), "n2"); err != nil {
			w.t.Fatal(err)
		}
	}
	if got := w.peer.schedulable(); !slices.Equal(got, []string{"n1"}) {
		w.t.Errorf("left %v", got)
	}
}
