// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// authority makes the PEM text of a certificate.
func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "BMCs"}, NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestTrust(t *testing.T) {
	t.Parallel()
	base, err := os.ReadFile("testdata/diagnostics/base.hcl")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		tls  string
		mode TLSMode // "" for an error
	}{
		{`"pin-first-seen"`, TLSPinFirstSeen},
		{`"insecure"`, TLSInsecure},
		{`"sha256:` + strings.Repeat("Ab", 32) + `"`, TLSFingerprint},
		{`"ca.pem"`, TLSAuthority},
		{`file("ca.pem")`, TLSAuthority},
		{`"none.pem"`, ""},
		{`"../ca.pem"`, ""},
		{`"key.pem"`, ""},
		{`"` + strings.Repeat("a", 63) + `"`, ""},
	}
	for _, c := range cases {
		fsys := fstest.MapFS{
			"base.hcl": {Data: base}, "ca.pem": {Data: authority(t)}, "key.pem": {Data: []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")},
			"x.hcl": {Data: fmt.Appendf(nil, "bmc \"x\" {\n  protocol = \"redfish\"\n  network  = network.oob\n  username = \"u\"\n  password = secret(\"env:P\")\n  tls      = %s\n}\nrack \"r\" {\n  node \"n\" {\n    role = role.w\n    unit = 1\n  }\n}\n", c.tls)},
		}
		inv, diags, files := LoadFS(fsys, Options{})
		got := inv.BMCs[1].TLS
		switch {
		case c.mode == "" && (len(diags) != 1 || diags[0].Check != "bmc.tls"):
			t.Errorf("%s: got %s, want one bmc.tls", c.tls, text(t, diags, files))
		case c.mode != "" && (len(diags) > 0 || got.Mode != c.mode):
			t.Errorf("%s: got %q, want %q\n%s", c.tls, got.Mode, c.mode, text(t, diags, files))
		case got.Mode == TLSFingerprint && got.Fingerprint != strings.Repeat("ab", 32):
			t.Errorf("fingerprint: got %q", got.Fingerprint)
		}
	}
}

// TestBMCOverride gives a node a BMC of another protocol than its profile's.
func TestBMCOverride(t *testing.T) {
	t.Parallel()
	base, err := os.ReadFile("testdata/diagnostics/base.hcl")
	if err != nil {
		t.Fatal(err)
	}
	const src = "rack \"r\" {\n  node \"n\" {\n    role = role.w\n    unit = 1\n    bmc {\n      protocol = \"ipmi\"\n    }\n  }\n  node \"m\" {\n    role = role.w\n    unit = 3\n    bmc {\n      password = secret(\"env:OTHER\")\n      port     = 8443\n    }\n  }\n}\n"
	inv, diags, files := LoadFS(fstest.MapFS{"base.hcl": {Data: base}, "x.hcl": {Data: []byte(src)}}, Options{})
	if len(diags) > 0 {
		t.Fatal(text(t, diags, files))
	}
	m, n := inv.Nodes[0].BMC, inv.Nodes[1].BMC
	if n.Protocol != "ipmi" || n.Port != 623 || n.CipherSuite != 17 || n.TLS.Mode != "" || n.Password != "env:P" {
		t.Errorf("ipmi: got %+v", n)
	}
	if m.Protocol != "redfish" || m.Port != 8443 || m.TLS.Mode != TLSPinFirstSeen || m.Password != "env:OTHER" {
		t.Errorf("redfish: got %+v", m)
	}
}
