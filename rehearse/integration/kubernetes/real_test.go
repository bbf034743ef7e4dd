// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
	virtual "github.com/ironrail/ironrail/rehearse/virtual/kubernetes"
)

var tokenForm = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// realPeer is a kube-apiserver with its etcd on loopback. There is no controller
// and no kubelet: the tests say what these would.
type realPeer struct {
	t      *testing.T
	at, ca string
}

func startReal(t *testing.T) peer {
	t.Helper()
	peertest.Need(t, "kube-apiserver", "etcd")
	dir := t.TempDir()
	p := &realPeer{t: t, at: free(t)}
	certify(t, dir)
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	p.ca = string(ca)
	users := adminToken + ",admin,1,system:masters\n"
	if err := os.WriteFile(filepath.Join(dir, "users.csv"), []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	client, other := "http://"+free(t), "http://"+free(t)
	daemon(t, dir, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", other,
		"--initial-advertise-peer-urls", other, "--initial-cluster", "default="+other, "--unsafe-no-fsync")
	_, port, _ := net.SplitHostPort(p.at)
	daemon(t, dir, "kube-apiserver", "--etcd-servers", client, "--bind-address", "127.0.0.1", "--secure-port", port, "--tls-cert-file", filepath.Join(dir, "server.crt"),
		"--tls-private-key-file", filepath.Join(dir, "server.key"), "--client-ca-file", filepath.Join(dir, "ca.crt"), "--token-auth-file", filepath.Join(dir, "users.csv"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", filepath.Join(dir, "server.key"),
		"--service-account-signing-key-file", filepath.Join(dir, "server.key"), "--authorization-mode", "Node,RBAC", "--enable-bootstrap-token-auth",
		"--service-cluster-ip-range", "10.96.0.0/16", "--disable-admission-plugins", "ServiceAccount")
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if code, _ := ask(t, p, "GET", "/api/v1/namespaces/default", "", adminToken); code == http.StatusOK {
			return p
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(dir, "kube-apiserver.log"))
			t.Fatalf("kube-apiserver does not come up:\n%s", log[max(0, len(log)-3000):])
		}
	}
}

// daemon runs a program until the test ends.
func daemon(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, 5*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait(); _ = log.Close() })
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certify writes a CA and the certificate of an API server.
func certify(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for name, c := range map[string]*x509.Certificate{"ca.crt": ca, "server.crt": leaf} {
		der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "server.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *realPeer) reach() (string, string, string) { return p.at, p.ca, adminToken }

// join wants the token to be one of a node that joins, and registers the node as
// its kubelet would.
func (p *realPeer) join(token, node string, taints []virtual.Taint) error {
	const review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	code, body := 0, []byte(nil)
	for range 50 { // the API server learns of a token after it has stored it
		if code, body = ask(p.t, p, "POST", review, `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`, token); code == http.StatusCreated {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if code != http.StatusCreated || !strings.Contains(string(body), "system:bootstrappers:kubeadm:default-node-token") {
		return fmt.Errorf("the API server does not take the token: %d %s", code, body)
	}
	n, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": node}, "spec": map[string]any{"taints": taints}})
	if err != nil {
		return err
	}
	admin(p.t, p, "POST", "/api/v1/nodes", string(n))
	p.start(node)
	return nil
}

func (p *realPeer) condition(node, status string) {
	admin(p.t, p, "PATCH", "/api/v1/nodes/"+node+"/status", fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"reason":"Test","message":"said by the test"}]}}`, status))
	// What the node controller adds for a node that is not ready goes with it.
	if status == "True" {
		n := show(p.t, p, node)
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t virtual.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
		b, _ := json.Marshal(map[string]any{"spec": map[string]any{"taints": n.Spec.Taints}})
		admin(p.t, p, "PATCH", "/api/v1/nodes/"+node, string(b))
	}
}

func (p *realPeer) stop(node string)  { p.condition(node, "Unknown") }
func (p *realPeer) start(node string) { p.condition(node, "True") }
func (p *realPeer) cordon(node string) {
	admin(p.t, p, "PATCH", "/api/v1/nodes/"+node, `{"metadata":{"labels":{"kept":"yes"}},"spec":{"unschedulable":true,"taints":[{"key":"theirs","effect":"NoExecute"}]}}`)
}

// submit runs a pod. One whose budget refuses has a budget that nobody has looked
// at yet, which allows nothing; it goes away after a moment where it has an end.
func (p *realPeer) submit(pod virtual.Pod) {
	meta := map[string]any{"name": pod.Name, "namespace": pod.Namespace, "labels": map[string]string{"app": pod.Name}}
	if pod.Owner != "" {
		group := map[string]string{"Job": "batch/v1"}[pod.Owner]
		if group == "" {
			group = "apps/v1"
		}
		meta["ownerReferences"] = []any{map[string]any{"apiVersion": group, "kind": pod.Owner, "name": pod.Name, "uid": "0c0ffee0-0000-4000-8000-000000000000", "controller": true}}
	}
	b, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": map[string]any{"nodeName": pod.Node, "terminationGracePeriodSeconds": 0, "containers": []any{map[string]string{"name": "c", "image": "none"}}}})
	admin(p.t, p, "POST", "/api/v1/namespaces/"+pod.Namespace+"/pods", string(b))
	admin(p.t, p, "PATCH", "/api/v1/namespaces/"+pod.Namespace+"/pods/"+pod.Name+"/status", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	if pod.Refusals == 0 {
		return
	}
	budget := "/apis/policy/v1/namespaces/" + pod.Namespace + "/poddisruptionbudgets"
	admin(p.t, p, "POST", budget, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":%q},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":%q}}}}`, pod.Name, pod.Name))
	if pod.Refusals < 10 {
		timer := time.AfterFunc(300*time.Millisecond, func() { _, _ = ask(p.t, p, "DELETE", budget+"/"+pod.Name, "", adminToken) })
		p.t.Cleanup(func() { timer.Stop() })
	}
}

func (p *realPeer) schedulable() (names []string) {
	var list struct{ Items []node }
	decode(p.t, admin(p.t, p, "GET", "/api/v1/nodes", ""), &list)
	for _, n := range list.Items {
		if !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 {
			names = append(names, n.Name)
		}
	}
	return names
}

func (p *realPeer) tokens() int {
	var list struct{ Items []node }
	decode(p.t, admin(p.t, p, "GET", "/api/v1/namespaces/kube-system/secrets", ""), &list)
	return len(list.Items)
}

// node is what of a node, or another object, the tests look at.
type node struct {
	Metadata `json:"metadata"`
	Spec     struct {
		Taints        []virtual.Taint `json:"taints"`
		Unschedulable bool            `json:"unschedulable"`
	} `json:"spec"`
}

// Metadata is what objects have in common.
type Metadata struct {
	Name   string            `json:"name"`
	UID    string            `json:"uid"`
	Labels map[string]string `json:"labels"`
}

func show(t *testing.T, p peer, name string) (n node) {
	t.Helper()
	decode(t, admin(t, p, "GET", "/api/v1/nodes/"+name, ""), &n)
	return n
}

func pods(t *testing.T, p peer, on string) (names []string) {
	t.Helper()
	var list struct{ Items []node }
	decode(t, admin(t, p, "GET", "/api/v1/pods?fieldSelector=spec.nodeName="+on, ""), &list)
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names
}

func decode(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
}

// admin does something that has to go well.
func admin(t *testing.T, p peer, method, path, body string) []byte {
	t.Helper()
	code, b := ask(t, p, method, path, body, adminToken)
	if code/100 != 2 && (method != "DELETE" || code != http.StatusNotFound) {
		t.Fatalf("%s %s: %d %s", method, path, code, b)
	}
	return b
}

func ask(t *testing.T, p peer, method, path, body, token string) (int, []byte) {
	at, ca, _ := p.reach()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(ca))
	c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	if body != "" && !strings.Contains(path, "?") {
		path += "?fieldValidation=Strict"
	}
	req, err := http.NewRequest(method, "https://"+at+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[method])
	if method == "POST" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, b
}
