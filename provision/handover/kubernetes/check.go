// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
)

// Name is the kind's name in the language.
const Name = "kubernetes"

// The forms are those of "Labels and Selectors" and "Object Names and IDs" in the
// Kubernetes documentation, after RFC 1123.
var (
	hostForm   = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	prefixForm = lazyregexp.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	wordForm   = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
)

const (
	maxWord   = 63  // characters of a label's name and value
	maxPrefix = 253 // characters of its prefix
)

// effects are what a taint does (Taints and Tolerations).
var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// Check looks at one block. Names of nodes need no check: the language wants host
// names already, and a node of Kubernetes has no other form.
func Check(_ *inventory.Inventory, b inventory.Block) diag.List {
	c := &check{block: b}
	c.checkEndpoint()
	c.checkLabels()
	c.checkTaints()
	c.checkCA()
	return c.found
}

// check is the work on one block.
type check struct {
	found diag.List
	block inventory.Block
}

func (c *check) add(name, attribute, summary, format string, args ...any) *diag.Diagnostic {
	return c.found.Add(name, c.block.Place(attribute), summary, fmt.Sprintf(format, args...)).In(c.block.Decl)
}

// checkEndpoint asks for what `kubeadm join` takes: a host and a port, as they are
// or as the URL of the API server.
func (c *check) checkEndpoint() {
	text := c.block.Text("endpoint")
	if why := wrongEndpoint(text); why != "" {
		c.add("kubernetes.endpoint", "endpoint", "Not the endpoint of an API server", "%q %s. Write host and port, such as \"10.20.0.5:6443\", or \"https://10.20.0.5:6443\".", text, why)
	}
}

// wrongEndpoint says what is wrong with an endpoint; "" for nothing.
func wrongEndpoint(text string) string {
	rest := text
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return "is no URL"
		case u.Scheme != "https":
			return "is not reached by TLS, which the API server speaks alone"
		case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return "has more than a host and a port"
		}
		rest = u.Host
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return "has no port"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "has no port from 1 to 65535"
	}
	if _, err := netip.ParseAddr(host); err != nil && !hostForm.MatchString(strings.ToLower(host)) {
		return "names no host"
	}
	return ""
}

// checkCA asks for a CA, or the pin of one.
func (c *check) checkCA() {
	text := c.block.Text("ca")
	if text == "" {
		return // a plan asks for it
	}
	if why := api.WrongCA(text); why != "" {
		c.add("kubernetes.ca", "ca", "Not the CA of an API server", "The `ca` %s. Write ca = file(\"ca.crt\") with the cluster's /etc/kubernetes/pki/ca.crt, or the pin of its key, \"sha256:\" and 64 hex digits, which `kubeadm token create --print-join-command` shows.", why)
	}
}

// checkLabels holds labels against the grammar.
func (c *check) checkLabels() {
	for key, value := range c.block.Entries("labels") {
		if why := wrongKey(key); why != "" {
			c.add("kubernetes.label", "labels", "Not a label", "The label %q %s.", key, why)
		} else if why := wrongValue(value); why != "" {
			c.add("kubernetes.label", "labels", "Not the value of a label", "The value %q of label %q %s.", value, key, why)
		} else if isReserved(key) {
			c.add("kubernetes.label", "labels", "Label that a kubelet may not set", "The label %q is of Kubernetes itself: a kubelet may set it on no node (NodeRestriction), and the join fails or loses it. Take a prefix of your own, such as \"example.com/pool\".", key).Warn()
		}
	}
}

// wrongKey says what is wrong with the key of a label or a taint.
func wrongKey(key string) string {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	}
	switch {
	case found && (len(prefix) > maxPrefix || !prefixForm.MatchString(prefix)):
		return "has a prefix that is no DNS name in lower case"
	case len(name) > maxWord || !wordForm.MatchString(name):
		return "has no name of at most 63 letters, digits, and - _ . within"
	}
	return ""
}

// wrongValue says what is wrong with a value; it may be empty.
func wrongValue(value string) string {
	if value != "" && (len(value) > maxWord || !wordForm.MatchString(value)) {
		return "is not at most 63 letters, digits, and - _ . within"
	}
	return ""
}

// allowedOwn are labels of Kubernetes that a kubelet may set itself
// (NodeRestriction admission plugin).
var allowedOwn = []string{"kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type",
	"failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"}

// isReserved reports whether a kubelet may not set the label on its own node.
func isReserved(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	if !found || slices.Contains(allowedOwn, key) {
		return false
	}
	if prefix == "kubelet.kubernetes.io" || strings.HasSuffix(prefix, ".kubelet.kubernetes.io") || prefix == "node.kubernetes.io" || strings.HasSuffix(prefix, ".node.kubernetes.io") {
		return false
	}
	return prefix == "kubernetes.io" || strings.HasSuffix(prefix, ".kubernetes.io") || prefix == "k8s.io" || strings.HasSuffix(prefix, ".k8s.io")
}

// checkTaints holds taints against the grammar: key[=value]:effect.
func (c *check) checkTaints() {
	for _, t := range c.block.Texts("taints") {
		if why := wrongTaint(t); why != "" {
			c.add("kubernetes.taint", "taints", "Not a taint", "The taint %q %s. A taint is written \"key=value:NoSchedule\" or \"key:NoSchedule\".", t, why)
		}
	}
}

func wrongTaint(t string) string {
	rest, effect, found := cutLast(t, ":")
	if !found {
		return "has no effect"
	}
	if !slices.Contains(effects, effect) {
		return fmt.Sprintf("has the effect %q, which is none of %s", effect, diag.Quoted(effects))
	}
	key, value, _ := strings.Cut(rest, "=")
	if why := wrongKey(key); why != "" {
		return why
	}
	if wrongValue(value) != "" {
		return "has a value that is not at most 63 letters, digits, and - _ . within"
	}
	return ""
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
