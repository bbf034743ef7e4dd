// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// pemOf is a certificate of an authority with a name.
func pemOf(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestSecureBoot: what services show of Secure Boot differs, and what is left out is not shown.
func TestSecureBoot(t *testing.T) {
	t.Parallel()
	ref := func(p string) map[string]any { return map[string]any{"@odata.id": p} }
	refs := func(p ...string) map[string]any {
		var all []any
		for _, q := range p {
			all = append(all, ref(q))
		}
		return map[string]any{"Members": all}
	}
	const at = sysPath + "/SecureBoot"
	for name, c := range map[string]struct {
		linked bool
		docs   map[string]map[string]any
		want   string
		kind   errkind.Kind
	}{
		"no resource":      {false, nil, "{   []}", errkind.Unsupported},
		"no licence":       {true, nil, "{   []}", errkind.Unsupported},
		"state alone":      {true, map[string]map[string]any{at: {"SecureBootEnable": false, "SecureBootCurrentBoot": "Disabled", "SecureBootMode": "UserMode"}}, "{Disabled false UserMode []}", 0},
		"without Enable":   {true, map[string]map[string]any{at: {"SecureBootEnable": nil, "SecureBootCurrentBoot": "Enabled"}}, "{Enabled   []}", 0},
		"databases hidden": {true, map[string]map[string]any{at: {"SecureBootCurrentBoot": "Enabled", "SecureBootDatabases": ref(at + "/never")}}, "{Enabled   []}", 0},
		"a certificate that cannot be read": {true, map[string]map[string]any{
			at:               {"SecureBootCurrentBoot": "Enabled", "SecureBootDatabases": ref(at + "/D")},
			at + "/D":        refs(at + "/D/db"),
			at + "/D/db":     {"DatabaseId": "db", "Certificates": ref(at + "/D/db/C")},
			at + "/D/db/C":   refs(at+"/D/db/C/1", at+"/D/db/C/2"),
			at + "/D/db/C/1": {"Subject": map[string]any{"CommonName": "ACME"}},
			at + "/D/db/C/2": {"CertificateString": "nonsense"},
		}, "{Enabled   []}", 0},
		"certificates": {true, map[string]map[string]any{
			at:               {"SecureBootEnable": true, "SecureBootCurrentBoot": "Enabled", "SecureBootDatabases": ref(at + "/D")},
			at + "/D":        refs(at+"/D/PK", at+"/D/db"),
			at + "/D/PK":     {"DatabaseId": "PK", "Certificates": ref("/never")},
			at + "/D/db":     {"Id": "db", "Certificates": ref(at + "/D/db/C")},
			at + "/D/db/C":   refs(at+"/D/db/C/1", at+"/D/db/C/2"),
			at + "/D/db/C/1": {"CertificateString": pemOf(t, "Microsoft UEFI CA 2023")},
			at + "/D/db/C/2": {"Subject": map[string]any{"CommonName": "ACME"}},
		}, "{Enabled true  [Microsoft UEFI CA 2023 ACME]}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			if c.linked {
				f.docs[sysPath]["SecureBoot"] = ref(at)
			}
			for path, doc := range c.docs {
				f.docs[path] = doc
			}
			rig(t, f, nil, func(ctx context.Context, cl *Client) {
				_ = cl.Open(ctx)
				got, err := cl.SecureBoot(ctx)
				if errkind.Of(err) != c.kind && (err != nil || c.kind != 0) || fmt.Sprintf("{%s %s %s %v}", got.Current, got.Wanted, got.Mode, got.Authorities) != c.want {
					t.Errorf("got %v, %v; want %s", got, err, c.want)
				}
			})
		})
	}
}
