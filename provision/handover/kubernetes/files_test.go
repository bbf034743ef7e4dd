// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"encoding/pem"
	"flag"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
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

// TestKubeletFiles: what a node without kubeadm gets. The CA is not part of the golden
// file.
func TestKubeletFiles(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	client, err := api.New(t.Context(), api.Config{Endpoint: "10.20.0.5:6443", CA: string(ca), Token: secret.NewValue("right")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var all bytes.Buffer
	for _, f := range kubeletFiles(client, joining, joinToken, "10.96.0.10", inService) {
		text := string(f.content)
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
