// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
)

// canary is the secret of rpc's tests; no error and no request may contain it.
const canary = "canary-4d0e-rpc"

// site is a service of a site's own over a real socket. odd answers a method in
// another way than well; it returns false to leave that to the service.
type site struct {
	t      *testing.T
	odd    func(w http.ResponseWriter, method string) bool
	mu     sync.Mutex
	power  string
	calls  map[string]int
	server *httptest.Server
}

func newSite(t *testing.T, odd func(http.ResponseWriter, string) bool) (*site, Target) {
	t.Helper()
	s := &site{t: t, odd: odd, power: "off", calls: map[string]int{}}
	s.server = httptest.NewUnstartedServer(s)
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s, Target{Node: "n1", Protocol: RPC, Addr: netip.MustParseAddrPort("192.0.2.7:443"), Password: secret.NewValue(canary),
		Endpoint: s.server.URL + "/power", Timeout: 5 * time.Second}
}

// ServeHTTP checks what every request must have, and answers it.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var q struct {
		ID           int64
		Host, Method string
		Params       struct{ State string }
	}
	if err := json.Unmarshal(body, &q); err != nil || q.Host != "192.0.2.7" || r.URL.Path != "/power" || r.Method != http.MethodPost {
		s.t.Errorf("%s %s: %s, %v", r.Method, r.URL, body, err)
	}
	mac := hmac.New(sha256.New, []byte(canary))
	mac.Write(body)
	if r.Header.Get("X-BMCLIB-Signature-256") != "sha256="+hex.EncodeToString(mac.Sum(nil)) || r.Header.Get("Authorization") != "" {
		s.t.Errorf("headers %v", r.Header)
	}
	if strings.Contains(fmt.Sprint(r.Header, string(body)), canary) {
		s.t.Error("the secret is sent")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[q.Method]++
	if s.odd != nil && s.odd(w, q.Method) {
		return
	}
	if q.Method == "setPowerState" {
		s.power = q.Params.State
	}
	_, _ = fmt.Fprintf(w, `{"id":%d,"host":%q,"result":%q}`, q.ID, q.Host, s.power)
}

func (s *site) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// answers returns an odd answer to one method.
func answers(method string, status int, body string) func(http.ResponseWriter, string) bool {
	return func(w http.ResponseWriter, m string) bool {
		if m == method {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
		return m == method
	}
}

// noError stands for no error among kinds.
const noError errkind.Kind = 255

// TestRPCAnswers: what a service may answer to a question, and what is made of it.
func TestRPCAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   PowerState
		kind   errkind.Kind // noError: none
	}{
		{"on", 200, `{"result":"On"}`, PowerOn, noError},
		{"without a length", 200, `{"result":"off"}` + strings.Repeat(" ", 10<<10), PowerOff, noError},
		{"neither", 200, `{"result":"booting"}`, PowerUnknown, noError},
		{"an error", 200, `{"error":{"code":7,"message":"no\nsuch node"}}`, PowerUnknown, errkind.Refused},
		{"not a word", 200, `{"result":1}`, PowerUnknown, errkind.Internal},
		{"not JSON", 200, `<html>`, PowerUnknown, errkind.Timeout},
		{"too long", 200, `{"result":"` + strings.Repeat("x", rpcAnswerMost) + `"}`, PowerUnknown, errkind.Timeout},
		{"unknown signature", 401, ``, PowerUnknown, errkind.Auth},
		{"elsewhere", 307, ``, PowerUnknown, errkind.Refused},
		{"not found", 404, `no`, PowerUnknown, errkind.Refused},
		{"a proxy that waits in vain", 504, `no`, PowerUnknown, errkind.Timeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, target := newSite(t, answers("getPowerState", tt.status, tt.body))
			s, err := Open(t.Context(), target, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(context.WithoutCancel(t.Context()))
			got, err := s.PowerState(t.Context())
			if got != tt.want || (err == nil) != (tt.kind == noError) || err != nil && errkind.Of(err) != tt.kind {
				t.Errorf("got %q, %v (%s)", got, err, errkind.Of(err))
			}
			if text := fmt.Sprintf("%v %s", err, errkind.Action(err)); strings.Contains(text, canary) || strings.ContainsAny(text, "\n") {
				t.Errorf("%q", text)
			}
		})
	}
}

// TestRPCLostAnswers: a command is sent once whatever becomes of its answer, and what
// is read afterwards decides.
func TestRPCLostAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		odd   func(s *site, w http.ResponseWriter)
		taken bool
		kind  errkind.Kind
	}{
		{"carried out, then cut", func(s *site, _ http.ResponseWriter) { s.power = "on"; panic(http.ErrAbortHandler) }, true, noError},
		{"carried out, then silent", func(s *site, _ http.ResponseWriter) { s.power = "on"; time.Sleep(6 * time.Second) }, true, noError},
		{"carried out, then a proxy's error", func(s *site, w http.ResponseWriter) { s.power = "on"; w.WriteHeader(502) }, true, noError},
		{"refused", func(_ *site, w http.ResponseWriter) { _, _ = io.WriteString(w, `{"error":{"code":1,"message":"no"}}`) }, false, errkind.Refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s *site
			s, target := newSite(t, func(w http.ResponseWriter, method string) bool {
				if method == "setPowerState" {
					tt.odd(s, w)
				}
				return method == "setPowerState"
			})
			b, err := Open(t.Context(), target, Options{})
			if err != nil {
				t.Fatal(err)
			}
			out, err := b.SetPower(t.Context(), On)
			if s.count("setPowerState") != 1 || out.Sent != 1 || (out.Verdict == Verified) != tt.taken || (err == nil) != tt.taken || err != nil && errkind.Of(err) != tt.kind {
				t.Errorf("%+v, %v after %d commands", out, err, s.count("setPowerState"))
			}
		})
	}
}

// TestRPCTargets: what no service can be asked with is refused before anything is sent.
func TestRPCTargets(t *testing.T) {
	t.Parallel()
	good := Target{Node: "n1", Protocol: RPC, Addr: netip.MustParseAddrPort("192.0.2.7:443"), Password: secret.NewValue(canary), Endpoint: "https://192.0.2.9/rpc"}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Target){
		"no endpoint": func(t *Target) { t.Endpoint = "" },
		"plain HTTP":  func(t *Target) { t.Endpoint = "http://192.0.2.9/rpc" },
		"a name":      func(t *Target) { t.Endpoint = "https://power.example/rpc" },
		"a password":  func(t *Target) { t.Endpoint = "https://u:p@192.0.2.9/rpc" },
		"no secret":   func(t *Target) { t.Password = secret.Value{} },
	} {
		bad := good
		spoil(&bad)
		if _, err := Open(t.Context(), bad, Options{}); errkind.Of(err) != errkind.Invalid || errkind.Action(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRPCCertificate: another certificate than the first one ends it, before anything
// is signed.
func TestRPCCertificate(t *testing.T) {
	t.Parallel()
	s, target := newSite(t, nil)
	target.Pinned = strings.Repeat("ab", 32)
	if _, err := Open(t.Context(), target, Options{}); errkind.Of(err) != errkind.Mismatch || s.count("ping") != 0 {
		t.Errorf("%v after %d requests", err, s.count("ping"))
	}
}
