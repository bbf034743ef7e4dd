// SPDX-License-Identifier: Apache-2.0

package tlstrust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestTrust: a server is trusted by its authority or its pin, by nothing else, and a
// redirect is not followed.
func TestTrust(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.RedirectHandler("http://192.0.2.1/", http.StatusFound))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	sum := sha256.Sum256(server.Certificate().RawSubjectPublicKeyInfo)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for _, c := range []struct {
		name, setting, want string
	}{
		{"pin", "sha256:" + strings.ToUpper(hex.EncodeToString(sum[:])), ""},
		{"authority", "\n" + authority, ""},
		{"system", "", "certificate"},
		{"another pin", "sha256:" + strings.Repeat("0", 64), "its pin is sha256:" + hex.EncodeToString(sum[:])},
		{"short pin", "sha256:00", "64 hex digits"},
		{"key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "private key"},
		{"text", "ca.pem", "neither"},
		{"broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be read"},
	} {
		client, err := NewClient(c.setting, 5*time.Second)
		var r *http.Response
		if err == nil {
			r, err = client.Get(server.URL)
		}
		switch {
		case c.want == "" && (err != nil || r.StatusCode != http.StatusFound):
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
