// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/secret"
)

// Token is a bootstrap token: what a kubelet shows to get its first certificate.
type Token struct {
	ID     string
	Secret secret.Value // of both parts: ID.SECRET
}

// Of bootstrap tokens (Kubernetes, "Authenticating with Bootstrap Tokens").
const (
	tokenLetters = "abcdefghijklmnopqrstuvwxyz0123456789"
	joinGroup    = "system:bootstrappers:kubeadm:default-node-token"
	secretsPath  = "/api/v1/namespaces/kube-system/secrets"
)

// NewToken makes a bootstrap token at the cluster that ends by itself after some
// time. It is for nodes that join, and for nothing else.
func (c *Client) NewToken(ctx context.Context, until time.Time) (Token, error) {
	id, key := randomLetters(6), randomLetters(16)
	body := map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
		"metadata": map[string]any{"name": "bootstrap-token-" + id, "namespace": "kube-system"},
		"stringData": map[string]string{"description": "ironrail: nodes that are handed over", "token-id": id, "token-secret": key,
			"expiration": until.UTC().Format(time.RFC3339), "usage-bootstrap-authentication": "true", "auth-extra-groups": joinGroup}}
	if err := c.do(ctx, http.MethodPost, secretsPath+strict, plainJSON, body, nil); err != nil {
		return Token{}, err
	}
	return Token{ID: id, Secret: secret.NewValue(id + "." + key)}, nil
}

// EndToken removes a bootstrap token; one that is not there is removed.
func (c *Client) EndToken(ctx context.Context, t Token) error {
	err := c.do(ctx, http.MethodDelete, secretsPath+"/bootstrap-token-"+t.ID, "", nil, nil)
	if NotFound(err) {
		return nil
	}
	return err
}

// randomLetters are n random letters and digits, each as likely as the others.
func randomLetters(n int) string {
	var out strings.Builder
	var b [1]byte
	for out.Len() < n {
		_, _ = rand.Read(b[:]) // never fails
		if int(b[0]) < 256/len(tokenLetters)*len(tokenLetters) {
			out.WriteByte(tokenLetters[int(b[0])%len(tokenLetters)])
		}
	}
	return out.String()
}
