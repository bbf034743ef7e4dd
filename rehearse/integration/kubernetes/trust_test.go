// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
	virtual "github.com/ironrail/ironrail/rehearse/virtual/kubernetes"
)

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
		"no CA":         {at, "", "right", errkind.Invalid, "is neither a certificate in PEM nor a pin"},
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
