// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ironrail/ironrail/rehearse/virtual/kubernetes"
)

// Cluster takes kubelets in.
type Cluster interface {
	Join(token, node string, taints []kubernetes.Taint) error
}

// Clusters tells the nodes which cluster answers at an endpoint, host and port;
// nil for none. Call it before the first node boots.
func (s *Site) Clusters(at func(endpoint string) Cluster) { s.clusters = at }

// Has reports whether the system of a node runs and has a file, by its name
// without a slash in front.
func (s *Site) Has(name, file string) bool {
	s.mu.Lock()
	var n *node
	for _, up := range s.up {
		if up.cfg.Node == name {
			n = up
		}
	}
	s.mu.Unlock()
	return n != nil && n.tree.exists(file)
}

const (
	kubeadmVersion = "v1.34.1"
	kubeletConf    = "etc/kubernetes/kubelet.conf"
)

// runKubeadm is `kubeadm version`, `kubeadm join --config` and `kubeadm reset`: it
// reads the files and registers the node, without a kubelet that runs pods.
func runKubeadm(_ context.Context, c call) int {
	fail := func(err error) int {
		_, _ = fmt.Fprintf(c.Err, "error execution phase kubelet-start: %v\nTo see the stack trace of this error execute with --v=5 or higher\n", err)
		return 1
	}
	switch line := strings.Join(c.Argv[1:], " "); {
	case line == "version -o short":
		c.print(kubeadmVersion + "\n")
	case line == "reset --force":
		_ = c.n.tree.Remove(kubeletConf) // one that never joined has none
	case strings.HasPrefix(line, "join --config ") && len(c.Argv) == 4:
		if err := c.n.join(c.Argv[3]); err != nil {
			return fail(err)
		}
		c.print("This node has joined the cluster:\n* Certificate signing request was sent to apiserver and a response was received.\n")
	default:
		_, _ = io.WriteString(c.Err, "unknown command "+line+" for \"kubeadm\"\n")
		return 1
	}
	return 0
}

// joinFile is a JoinConfiguration, as far as it is read.
type joinFile struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Discovery  struct {
		File struct {
			Path string `yaml:"kubeConfigPath"`
		} `yaml:"file"`
		Token string `yaml:"tlsBootstrapToken"`
	} `yaml:"discovery"`
	Node struct {
		Name      string             `yaml:"name"`
		Taints    []kubernetes.Taint `yaml:"taints"`
		Arguments []struct {
			Name  string `yaml:"name"`
			Value string `yaml:"value"`
		} `yaml:"kubeletExtraArgs"`
	} `yaml:"nodeRegistration"`
}

// join does what a file says.
func (n *node) join(name string) error {
	var f joinFile
	if err := n.readYAML(name, &f); err != nil {
		return err
	}
	if f.APIVersion != "kubeadm.k8s.io/v1beta4" || f.Kind != "JoinConfiguration" {
		return fmt.Errorf("no kind %q is registered for version %q", f.Kind, f.APIVersion)
	}
	var d struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Clusters   []struct {
			Name    string `yaml:"name"`
			Cluster struct {
				Server string `yaml:"server"`
				CA     string `yaml:"certificate-authority-data"`
			} `yaml:"cluster"`
		} `yaml:"clusters"`
	}
	if err := n.readYAML(f.Discovery.File.Path, &d); err != nil {
		return err
	}
	if len(d.Clusters) != 1 || n.cfg.Site.clusters == nil {
		return fmt.Errorf("%s names no cluster", f.Discovery.File.Path)
	}
	server := strings.TrimPrefix(d.Clusters[0].Cluster.Server, "https://")
	c := n.cfg.Site.clusters(server)
	if c == nil {
		return fmt.Errorf("dial tcp %s: connect: no route to host", server)
	}
	if n.tree.exists(kubeletConf) {
		return fmt.Errorf("[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: /etc/kubernetes/kubelet.conf already exists")
	}
	if err := c.Join(f.Discovery.Token, f.Node.Name, f.Node.Taints); err != nil {
		return err
	}
	return n.tree.Put(kubeletConf, strings.NewReader("apiVersion: v1\nkind: Config\n"), 0o600)
}

// readYAML reads a file strictly, as kubeadm does.
func (n *node) readYAML(name string, into any) error {
	b, err := n.tree.ReadFile(relativeName(name))
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(strings.NewReader(string(b)))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
