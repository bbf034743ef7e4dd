// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// TestEnrol: a certificate is posted to the collection of db, once, and again without the owner
// where a service does not know that property.
func TestEnrol(t *testing.T) {
	t.Parallel()
	const at = sysPath + "/SecureBoot"
	ref := func(p string) map[string]any { return map[string]any{"@odata.id": p} }
	for name, c := range map[string]struct {
		shown  bool
		refuse func(body map[string]string) int // status; 0: it is taken
		posts  int
		kind   errkind.Kind
	}{
		"taken": {true, func(map[string]string) int { return 0 }, 1, 0},
		"no owner": {true, func(b map[string]string) int {
			return map[bool]int{true: http.StatusBadRequest}[b["UefiSignatureOwner"] != ""]
		}, 2, 0},
		"nonsense":  {true, func(map[string]string) int { return http.StatusBadRequest }, 2, errkind.Refused},
		"forbidden": {true, func(map[string]string) int { return http.StatusForbidden }, 1, errkind.Refused},
		"no db":     {false, nil, 0, errkind.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.docs[sysPath]["SecureBoot"] = ref(at)
			f.docs[at] = map[string]any{"SecureBootCurrentBoot": "Enabled"}
			if c.shown {
				f.docs[at]["SecureBootDatabases"] = ref(at + "/D")
				f.docs[at+"/D"] = map[string]any{"Members": []any{ref(at + "/D/dbDefault"), ref(at + "/D/db")}}
				f.docs[at+"/D/dbDefault"] = map[string]any{"Id": "dbDefault", "DatabaseId": "dbDefault", "Certificates": ref("/never")}
				f.docs[at+"/D/db"] = map[string]any{"Id": "db", "DatabaseId": "db", "Certificates": ref(at + "/D/db/C")}
			}
			posts := 0
			f.hook = func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost || r.URL.Path != at+"/D/db/C" {
					return false
				}
				posts++
				var body map[string]string
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body["CertificateType"] != "PEM" || !strings.HasPrefix(body["CertificateString"], "-----BEGIN") {
					t.Errorf("body %v: %v", body, err)
				}
				status := c.refuse(body)
				if status != 0 {
					refuse(w, status, "Base.1.8.PropertyUnknown", "no")
				} else {
					w.WriteHeader(http.StatusCreated)
				}
				return true
			}
			rig(t, f, nil, func(ctx context.Context, cl *Client) {
				_ = cl.Open(ctx)
				err := cl.Enrol(ctx, []byte(pemOf(t, "site")))
				if posts != c.posts || (err != nil) != (c.kind != 0) || err != nil && errkind.Of(err).Base() != c.kind {
					t.Errorf("%d requests, %v (%v)", posts, err, errkind.Of(err))
				}
			})
		})
	}
}

// TestKeyIs: certificates are known by their fingerprint, else by name and serial number.
func TestKeyIs(t *testing.T) {
	t.Parallel()
	k := Key{"site", "4A:0b", "aa"}
	for o, want := range map[Key]bool{{"other", "", "aa"}: true, {"site", "4A:0B", "bb"}: false, {"site", "4A:0B", ""}: true, {"site", "4A:0C", ""}: false, {"site", "", ""}: false, {}: false} {
		if k.Is(o) != want || o.Is(k) != want {
			t.Errorf("%v is %v: %v", k, o, !want)
		}
	}
}
