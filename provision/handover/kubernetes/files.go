// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
)

// Files of a kubelet without kubeadm.
const (
	bootstrapFile = "/etc/kubernetes/bootstrap-kubelet.conf" // with the token; removed when the node is ready
	authorityFile = "/etc/kubernetes/pki/ca.crt"
	configFile    = "/var/lib/kubelet/config.yaml"
	dropInFile    = "/etc/systemd/system/kubelet.service.d/20-ironrail.conf"
)

// runtimeSocket is that of containerd, as its packages have it.
const runtimeSocket = "unix:///run/containerd/containerd.sock"

// writeDiscovery returns a kubeconfig that says which cluster it is, and nothing secret.
func writeDiscovery(c *api.Client) []byte {
	return writeKubeconfig(c, "")
}

// writeKubeconfig returns one of a cluster, with a user's token or without.
func writeKubeconfig(c *api.Client, token string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Config\nclusters:\n- name: kubernetes\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n",
		strconv.Quote(c.Endpoint()), base64.StdEncoding.EncodeToString(c.Authority()))
	if token != "" {
		fmt.Fprintf(&b, "users:\n- name: bootstrap\n  user:\n    token: %s\ncontexts:\n- name: bootstrap\n  context:\n    cluster: kubernetes\n    user: bootstrap\ncurrent-context: bootstrap\n", strconv.Quote(token))
	}
	return b.Bytes()
}

// configVersion is the newest form of kubeadm's configuration that a version reads:
// v1beta4 is there since Kubernetes 1.31, v1beta3 since 1.22.
func configVersion(version string) string {
	var major, minor int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); n == 2 && (major > 1 || minor >= 31) {
		return "v1beta4"
	}
	return "v1beta3"
}

// joinConfiguration is what `kubeadm join --config` reads. The node is tainted from
// its first moment, so that no pod comes before it has its labels.
func joinConfiguration(version string, n *inventory.Node, t api.Token, w want) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: kubeadm.k8s.io/%s\nkind: JoinConfiguration\ndiscovery:\n  file:\n    kubeConfigPath: %s\n  tlsBootstrapToken: %s\n", configVersion(version), clusterFile, strconv.Quote(t.Secret.Reveal()))
	fmt.Fprintf(&b, "nodeRegistration:\n  name: %s\n  taints:\n", strconv.Quote(n.Name))
	writeTaints(&b, "  ", w)
	if n.Address.IsValid() {
		if configVersion(version) == "v1beta3" {
			fmt.Fprintf(&b, "  kubeletExtraArgs:\n    node-ip: %s\n", strconv.Quote(n.Address.String()))
		} else {
			fmt.Fprintf(&b, "  kubeletExtraArgs:\n  - name: node-ip\n    value: %s\n", strconv.Quote(n.Address.String()))
		}
	}
	return b.Bytes()
}

// writeTaints writes the taints that a node registers with.
func writeTaints(b *bytes.Buffer, indent string, w want) {
	taints := w.taints
	if w.service {
		taints = append([]api.Taint{{Key: unaccepted, Effect: "NoSchedule"}}, taints...)
	}
	for _, t := range taints {
		fmt.Fprintf(b, "%s- key: %s\n%s  effect: %s\n", indent, strconv.Quote(t.Key), indent, t.Effect)
		if t.Value != "" {
			fmt.Fprintf(b, "%s  value: %s\n", indent, strconv.Quote(t.Value))
		}
	}
}

// file is a file of a node.
type file struct {
	name    string
	mode    uint32
	content []byte
}

// kubeletFiles are what a kubelet needs to get its certificate by itself.
func kubeletFiles(c *api.Client, n *inventory.Node, t api.Token, dns string, w want) []file {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nauthentication:\n  anonymous:\n    enabled: false\n  webhook:\n    enabled: true\n  x509:\n    clientCAFile: %s\n", authorityFile)
	fmt.Fprintf(&b, "authorization:\n  mode: Webhook\ncgroupDriver: systemd\ncontainerRuntimeEndpoint: %s\nrotateCertificates: true\nclusterDomain: cluster.local\n", runtimeSocket)
	if dns != "" {
		fmt.Fprintf(&b, "clusterDNS:\n- %s\n", strconv.Quote(dns))
	}
	b.WriteString("registerWithTaints:\n")
	writeTaints(&b, "", w)
	arguments := fmt.Sprintf("--bootstrap-kubeconfig=%s --kubeconfig=%s --config=%s --hostname-override=%s", bootstrapFile, kubeletConf, configFile, n.Name)
	if n.Address.IsValid() {
		arguments += " --node-ip=" + n.Address.String()
	}
	return []file{
		{authorityFile, 0o644, c.Authority()},
		{configFile, 0o644, b.Bytes()},
		{bootstrapFile, 0o600, writeKubeconfig(c, t.Secret.Reveal())},
		{dropInFile, 0o644, fmt.Appendf(nil, "# Written by ironrail.\n[Service]\nExecStart=\nExecStart=/usr/bin/kubelet %s\n", arguments)},
	}
}
