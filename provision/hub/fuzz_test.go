// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"net/http/httptest"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// FuzzRequest: whatever a node or an unknown client sends is answered with a status of HTTP,
// nobody without a token and its node's address is heard, and nothing is kept that was
// not asked for.
func FuzzRequest(f *testing.F) {
	f.Add("POST", wire.PathHello, "t", "127.0.0.1:4000", []byte(`{"version":1,"boot_id":"b","identity":{"serial":"SN1"}}`))
	f.Add("GET", wire.PathTask+"?wait=1ms", "t", "127.0.0.1:4000", []byte(``))
	f.Add("POST", wire.PathProgress, "t", "127.0.0.1:4000", []byte(`{"key":"k","done":-1,"total":9223372036854775807}`))
	f.Add("POST", wire.PathResult, "t", "127.0.0.2:4000", []byte(`{"key":"k","result":{"a":[1,2]}}`))
	f.Add("PUT", "/", "", "[::1%eth0]:1", []byte("{"))
	f.Fuzz(func(t *testing.T, method, path, token, from string, body []byte) {
		if path == "" || path[0] != '/' {
			path = wire.PathTask + "?wait=1ms"
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a poll is held until its client goes
		h := New(Config{Grants: grants{"t": n1}})
		r := httptest.NewRequestWithContext(ctx, "POST", "/", bytes.NewReader(body))
		r.Method, r.RequestURI, r.RemoteAddr = method, path, from
		if u, err := r.URL.Parse(path); err == nil {
			r.URL = u
		}
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("status %d", w.Code)
		}
		if _, here := h.Connected(n1); here && (token != "t" || boot.AddressOf(r.RemoteAddr).String() != "127.0.0.1") {
			t.Errorf("%s of %s with token %q is connected as n1", path, from, token)
		}
		if w.Code == 200 && token != "t" {
			t.Errorf("%s %s without a token: %d %s", method, path, w.Code, w.Body)
		}
	})
}
