// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/ironrail/ironrail/internal/errkind"
)

const sampleRelease = "Origin: vendor\nSuite: stable\nComponents: main updates/extra\nArchitectures: amd64 arm64\nDate: Mon, 05 Jan 2026 10:00:00 UTC\n"

// newSigner makes a key of a vendor.
func newSigner(t *testing.T, name string) *Key {
	t.Helper()
	key, err := LoadKey(filepath.Join(t.TempDir(), name+".asc"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestProbe: what apt would refuse of a repository is found by asking for its index.
func TestProbe(t *testing.T) {
	t.Parallel()
	vendor, other := newSigner(t, "vendor"), newSigner(t, "other")
	inline := func(text string) []byte {
		b, err := vendor.sign([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var detached bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&detached, vendor.entity, strings.NewReader(sampleRelease), signingConfig()); err != nil {
		t.Fatal(err)
	}
	both := append(other.Public(), vendor.Public()...)
	old := sampleRelease + "Valid-Until: Tue, 06 Jan 2026 10:00:00 UTC\n"
	for _, c := range []struct {
		name   string
		files  map[string][]byte
		source Source
		arch   string
		kind   errkind.Kind
		says   string // empty: nothing is wrong
	}{
		{"suite", map[string][]byte{"/dists/stable/InRelease": inline(sampleRelease)}, Source{Suite: "stable", Components: []string{"main", "extra"}, Key: vendor.Public()}, "", 0, ""},
		{"flat", map[string][]byte{"/InRelease": inline(sampleRelease)}, Source{Suite: "./", Key: vendor.Public()}, "", 0, ""},
		{"flat below", map[string][]byte{"/u/InRelease": inline(sampleRelease)}, Source{Suite: "u/", Key: vendor.Public()}, "", 0, ""},
		{"detached", map[string][]byte{"/Release": []byte(sampleRelease), "/Release.gpg": detached.Bytes()}, Source{Suite: "./", Key: vendor.Public()}, "", 0, ""},
		{"one of two keys", map[string][]byte{"/InRelease": inline(sampleRelease)}, Source{Suite: "./", Key: both}, "", 0, ""},
		{"a key of the image", map[string][]byte{"/InRelease": inline(sampleRelease)}, Source{Suite: "./"}, "", 0, ""},
		{"other key", map[string][]byte{"/InRelease": inline(sampleRelease)}, Source{Suite: "./", Key: other.Public()}, "", errkind.Corrupt, "its key did not sign it"},
		{"other key, detached", map[string][]byte{"/Release": []byte(sampleRelease), "/Release.gpg": detached.Bytes()}, Source{Suite: "./", Key: other.Public()}, "", errkind.Corrupt, "its key did not sign it"},
		{"no index", nil, Source{Suite: "./"}, "", errkind.NotFound, "404"},
		{"a page of a proxy", map[string][]byte{"/InRelease": []byte("<html>log in</html>")}, Source{Suite: "./"}, "", errkind.Invalid, "no signed index"},
		{"component", map[string][]byte{"/dists/stable/InRelease": inline(sampleRelease)}, Source{Suite: "stable", Components: []string{"non-free"}}, "", errkind.NotFound, `no component "non-free"`},
		{"architecture", map[string][]byte{"/InRelease": inline(strings.Replace(sampleRelease, "amd64 ", "", 1))}, Source{Suite: "./"}, "", errkind.NotFound, "none for amd64"},
		{"another architecture", map[string][]byte{"/InRelease": inline(sampleRelease)}, Source{Suite: "./"}, "arm64", 0, ""},
		{"not the other architecture", map[string][]byte{"/InRelease": inline(strings.Replace(sampleRelease, " arm64", "", 1))}, Source{Suite: "./"}, "arm64", errkind.NotFound, "packages for amd64, and none for arm64"},
		{"outdated", map[string][]byte{"/InRelease": inline(old)}, Source{Suite: "./"}, "", errkind.Invalid, "valid until 2026-01-06"},
		{"signs in the suite", nil, Source{Suite: "a b"}, "", errkind.Refused, "cannot stand in a list of sources"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, ok := c.files[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write(b)
			}))
			defer s.Close()
			c.source.URL = s.URL
			err := c.source.Probe(t.Context(), c.arch)
			switch {
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says != "" && (err == nil || errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || errkind.Action(err) == ""):
				t.Errorf("got %v, kind %v, do %q", err, errkind.Of(err), errkind.Action(err))
			}
		})
	}
}

// TestProbeUnreachable: a repository that does not answer is no fault of its key.
func TestProbeUnreachable(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	if err := (Source{URL: s.URL, Suite: "./"}).Probe(t.Context(), ""); errkind.Of(err) != errkind.Unreachable || errkind.Action(err) == "" {
		t.Errorf("got %v, kind %v", err, errkind.Of(err))
	}
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer busy.Close()
	if err := (Source{URL: busy.URL, Suite: "./"}).Probe(t.Context(), ""); errkind.Of(err) != errkind.Unreachable || !strings.Contains(fmt.Sprint(err), "503") {
		t.Errorf("got %v, kind %v", err, errkind.Of(err))
	}
}

// TestProbeFile: a repository in a folder of the controller is read there.
func TestProbeFile(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), newSigner(t, "vendor")
	signed, err := key.sign([]byte(sampleRelease))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, inRelease), signed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Source{URL: "file:" + dir, Suite: "./", Key: key.Public()}).Probe(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if err := (Source{URL: "file:" + dir, Suite: "stable"}).Probe(t.Context(), ""); errkind.Of(err) != errkind.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestValidUntil(t *testing.T) {
	t.Parallel()
	text := sampleRelease + "Valid-Until: Tue, 06 Jan 2026 10:00:00 UTC\n"
	if err := (Source{}).fits(text, "", time.Date(2026, 1, 6, 9, 0, 0, 0, time.UTC)); err != nil {
		t.Error(err)
	}
	if err := (Source{}).fits(text, "", time.Date(2026, 1, 6, 11, 0, 0, 0, time.UTC)); err == nil {
		t.Error("an index whose time is over fits")
	}
}
