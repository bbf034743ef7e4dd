package kubernetes

import (
	"bytes"
	"context"
	"flag"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
	virtual "github.com/ironrail/ironrail/rehearse/virtual/kubernetes"
)

var updateFiles = flag.Bool("update-files", false, "write golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *updateFiles {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs (%v); got:\n%s", file, err, got)
	}
}

var (
	joining   = &inventory.Node{Name: "n1", Address: netip.MustParseAddr("10.77.0.11")}
	joinToken = api.Token{ID: "abcdef", Secret: secret.NewValue("abcdef.0123456789abcdef")}
	inService = want{service: true, taints: []api.Taint{{Key: "amd.com/gpu", Value: "present", Effect: "NoSchedule"}}}
)

// joinFiles are the golden files of the forms that versions of Kubernetes read.
var joinFiles = map[string]string{"v1.30.4": "join-v1beta3.yaml", "v1.34.1": "join-v1beta4.yaml"}

func TestJoinConfiguration(t *testing.T) {
	t.Parallel()
	for version, name := range joinFiles {
		golden(t, name, joinConfiguration(version, joining, joinToken, inService))
	}
}

// TestPeerJoinConfiguration: kubeadm itself reads both forms.
func TestPeerJoinConfiguration(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "kubeadm")
	for version, name := range joinFiles {
		got := joinConfiguration(version, joining, joinToken, inService)
		dir := t.TempDir()
		file, cluster := filepath.Join(dir, name), filepath.Join(dir, "discovery.conf")
		for name, content := range map[string][]byte{cluster: nil, file: bytes.ReplaceAll(got, []byte(clusterFile), []byte(cluster))} {
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.CommandContext(t.Context(), "kubeadm", "config", "validate", "--config", file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "ok") {
			t.Errorf("kubeadm refuses %s: %v\n%s", name, err, out)
		}
	}
}

// serve runs the virtual rack's API server on loopback.
func serve(t *testing.T) (*virtual.Cluster, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := virtual.New(virtual.Config{Endpoint: ln.Addr().String(), Token: "right"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, ln) }()
	t.Cleanup(func() { cancel(); <-done })
	return c, ln.Addr().String()
}

// TestKubeletFiles: what a node without kubeadm gets. The CA and the port differ
// from run to run.
func TestKubeletFiles(t *testing.T) {
	t.Parallel()
	c, at := serve(t)
	client, err := api.New(t.Context(), api.Config{Endpoint: at, CA: c.CA(), Token: secret.NewValue("right")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var all bytes.Buffer
	for _, f := range kubeletFiles(client, joining, joinToken, "10.96.0.10", inService) {
		text := strings.ReplaceAll(string(f.content), at, "10.20.0.5:6443")
		for line := range strings.Lines(text) {
			if data, _, ok := strings.Cut(line, "certificate-authority-data: "); ok {
				line = data + "certificate-authority-data: ...\n"
			}
			if f.name != authorityFile {
				all.WriteString(line)
			}
		}
		if secretIn := strings.Contains(text, joinToken.Secret.Reveal()); secretIn != (f.mode == 0o600) {
			t.Errorf("%s has mode %o; a token in it: %v", f.name, f.mode, secretIn)
		}
	}
	golden(t, "kubelet.txt", all.Bytes())
}

// TestTrust: who answers is proved before the token is sent.
func TestTrust(t *testing.T) {
	t.Parallel()
	c, at := serve(t)
	other, _ := serve(t)
	for name, x := range map[string]struct {
		endpoint, ca, token string
		kind                errkind.Kind
		want                string
	}{
		"another CA":    {at, other.CA(), "right", errkind.Auth, "certificate signed by unknown authority"},
		"another pin":   {at, "sha256:" + strings.Repeat("00", 32), "right", errkind.Auth, "is not the pinned one"},
		"no CA":         {at, "", "right", errkind.Mismatch, "is neither a certificate in PEM nor a pin"},
		"another token": {at, c.CA(), "wrong", errkind.Auth, "Unauthorized"},
		"nobody there":  {"127.0.0.1:1", c.CA(), "right", errkind.Unreachable, "connection refused"},
	} {
		client, err := api.New(t.Context(), api.Config{Endpoint: x.endpoint, CA: x.ca, Token: secret.NewValue(x.token)})
		if err == nil {
			_, err = client.Nodes(t.Context())
			client.Close()
		}
		if err == nil || errkind.Of(err) != x.kind || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), x.token+"-") || errkind.Action(err) == "" {
			t.Errorf("%s: %v (%v)", name, err, errkind.Of(err))
		}
	}
	c.Silence(true)
	client, err := api.New(t.Context(), api.Config{Endpoint: at, CA: c.CA(), Token: secret.NewValue("right")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Nodes(t.Context()); errkind.Of(err) != errkind.Unreachable {
		t.Errorf("503: %v", err)
	}
}
