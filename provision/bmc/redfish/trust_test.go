// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

func TestTrust(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		one, two := certificate(t, net.IP{10, 0, 0, 1}), certificate(t, net.IP{10, 0, 0, 2})
		contact := func(cert int, tune func(*Config)) (string, error) {
			defer serve(t, m, newFake(), []tls.Certificate{one, two}[cert])()
			cfg := config(m)
			tune(&cfg)
			c, err := New(cfg)
			if err != nil {
				return "", err
			}
			defer c.Close(t.Context())
			err = c.Open(t.Context())
			return c.Certificate(), err
		}
		pin, err := contact(0, func(*Config) {})
		if err != nil || len(pin) != 64 {
			t.Fatalf("first contact: %q, %v", pin, err)
		}
		other, _ := contact(1, func(*Config) {})
		ca := func(c tls.Certificate) string {
			return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
		}
		tests := []struct {
			name string
			cert int
			tune func(*Config)
			ok   bool
			text []string
		}{
			{"the pinned one", 0, func(c *Config) { c.Pinned = pin }, true, nil},
			{"another than the pinned one", 1, func(c *Config) { c.Pinned = pin }, false, []string{pin, other}},
			{"fingerprint with colons", 0, func(c *Config) {
				c.TLS = TLS{Mode: Fingerprint, Fingerprint: strings.ToUpper(pin[:2]) + ":" + pin[2:]}
			}, true, nil},
			{"wrong fingerprint", 0, func(c *Config) { c.TLS = TLS{Mode: Fingerprint, Fingerprint: other} }, false, []string{pin, other, "inventory"}},
			{"short fingerprint", 0, func(c *Config) { c.TLS = TLS{Mode: Fingerprint, Fingerprint: "ab"} }, false, []string{"2 hex digits"}},
			{"ca", 0, func(c *Config) { c.TLS = TLS{Mode: Authority, CA: ca(one)} }, true, nil},
			{"another ca", 0, func(c *Config) { c.TLS = TLS{Mode: Authority, CA: ca(two)} }, false, []string{"authority"}},
			{"ca, another's address", 1, func(c *Config) { c.TLS = TLS{Mode: Authority, CA: ca(two)} }, false, []string{"10.0.0.2"}},
			{"no ca", 0, func(c *Config) { c.TLS = TLS{Mode: Authority, CA: "x"} }, false, []string{"no certificate"}},
			{"insecure", 1, func(c *Config) { c.TLS, c.Pinned = TLS{Mode: Insecure}, pin }, true, nil},
		}
		for _, tt := range tests {
			_, err := contact(tt.cert, tt.tune)
			if (err == nil) != tt.ok || err != nil && (errkind.Of(err).Base() != errkind.Mismatch || (errkind.Of(err) == errkind.Mismatch) != errors.Is(err, ErrCertificate) || errkind.Action(err) == "") {
				t.Errorf("%s: %v (%s)", tt.name, err, errkind.Of(err))
			}
			for _, text := range tt.text {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %q is not in %v", tt.name, text, err)
				}
			}
		}
	})
}

// The certificate changes under a running client: the next connection is refused,
// and no password goes there.
func TestCertificateChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		stop := serve(t, m, newFake(), certificate(t))
		c, _ := New(config(m))
		defer c.Close(t.Context())
		if err := c.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop()
		if _, err := c.PowerState(t.Context()); errkind.Of(err) != errkind.Unreachable && errkind.Of(err) != errkind.Timeout {
			t.Errorf("while it is away: %v", err)
		}
		other := newFake()
		defer serve(t, m, other, certificate(t))()
		if err := c.Open(t.Context()); !errors.Is(err, ErrCertificate) || errkind.Of(err) != errkind.Mismatch {
			t.Errorf("got %v", err)
		}
		if len(other.seen) > 0 {
			t.Errorf("the other heard %q", other.seen)
		}
	})
}
