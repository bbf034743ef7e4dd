// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// pinPrefix begins a pin, as kubeadm's --discovery-token-ca-cert-hash has it.
const pinPrefix = "sha256:"

// WrongCA says what is wrong with the `ca` of a handover; "" for nothing.
func WrongCA(ca string) string {
	if hash, ok := strings.CutPrefix(strings.TrimSpace(ca), pinPrefix); ok {
		if b, err := hex.DecodeString(hash); err != nil || len(b) != sha256.Size {
			return "is a pin that has not 64 hex digits"
		}
		return ""
	}
	list, err := parseCertificates([]byte(ca))
	switch {
	case err != nil:
		return "holds a certificate that cannot be read"
	case len(list) == 0:
		return "is neither a certificate in PEM nor a pin"
	}
	for _, c := range list {
		if !c.IsCA {
			return "holds a certificate that is no CA's"
		}
	}
	return ""
}

// parseCertificates reads the certificates of a PEM text; other blocks are passed over.
func parseCertificates(text []byte) (list []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return list, nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
}

// readAuthority returns the CA in PEM: that of the configuration, or the one that the
// cluster publishes and a pin proves.
func readAuthority(ctx context.Context, c Config) ([]byte, error) {
	if why := WrongCA(c.CA); why != "" {
		return nil, errkind.New(errkind.Invalid, "the CA of API server %s %s", c.Endpoint, why).Do("Correct `ca` of the handover.")
	}
	pin, pinned := strings.CutPrefix(strings.TrimSpace(c.CA), pinPrefix)
	if !pinned {
		return []byte(c.CA), nil
	}
	published, err := readPublished(ctx, c)
	if err != nil {
		return nil, err
	}
	list, err := parseCertificates(published)
	if err != nil || len(list) == 0 {
		return nil, errkind.New(errkind.NotFound, "API server %s publishes no CA in kube-public/cluster-info", c.Endpoint).Do("Give the handover the CA itself: ca = file(\"ca.crt\").")
	}
	for _, cert := range list {
		if sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo); strings.EqualFold(hex.EncodeToString(sum[:]), pin) {
			return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), nil
		}
	}
	return nil, errkind.New(errkind.Auth, "the CA that API server %s publishes is not the pinned one", c.Endpoint).
		Do("Compare with `openssl x509 -pubkey -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | sha256sum` on the control plane.")
}

// readPublished reads the CA from kube-public/cluster-info, which everybody may
// (kubeadm, discovery by token). Whoever answers is not trusted yet: no token is
// sent, and what comes counts for nothing until the pin is compared.
func readPublished(ctx context.Context, c Config) ([]byte, error) {
	cl := &Client{base: "https://" + c.Endpoint, http: &http.Client{Transport: newTransport(c.Network, &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true})}}
	defer cl.Close()
	var info struct {
		Data map[string]string `json:"data"`
	}
	if err := cl.do(ctx, http.MethodGet, "/api/v1/namespaces/kube-public/configmaps/cluster-info", "", nil, &info); err != nil {
		return nil, err
	}
	var kubeconfig struct {
		Clusters []struct {
			Cluster struct {
				CA string `yaml:"certificate-authority-data"`
			} `yaml:"cluster"`
		} `yaml:"clusters"`
	}
	if err := yaml.Unmarshal([]byte(info.Data["kubeconfig"]), &kubeconfig); err != nil || len(kubeconfig.Clusters) == 0 {
		return nil, errkind.New(errkind.NotFound, "API server %s has no kubeconfig in kube-public/cluster-info", c.Endpoint).Do("Give the handover the CA itself: ca = file(\"ca.crt\").")
	}
	return base64.StdEncoding.DecodeString(kubeconfig.Clusters[0].Cluster.CA)
}

// newTrustingClient returns an HTTP client that believes one CA.
func newTrustingClient(c Config, ca []byte) (*http.Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errkind.New(errkind.Invalid, "the CA of API server %s holds no certificate", c.Endpoint)
	}
	return &http.Client{Transport: newTransport(c.Network, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

func newTransport(n network.Network, t *tls.Config) *http.Transport {
	return &http.Transport{TLSClientConfig: t, DialContext: func(ctx context.Context, kind, addr string) (net.Conn, error) {
		return network.Or(n).Dial(ctx, kind, addr)
	},
		TLSHandshakeTimeout: 15 * time.Second, ResponseHeaderTimeout: callWait, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 16, ForceAttemptHTTP2: false}
}

// isUntrusted reports whether an error is about the server's certificate.
func isUntrusted(err error) bool {
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	return verify
}
