// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	server "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
)

// repository is a registry on loopback with one image, which can be made to fail.
type repository struct {
	server *httptest.Server
	image  v1.Image
	cuts   atomic.Int32 // how many more answers for layers are cut short
	stalls atomic.Int32 // how many stop in their middle
	ranges atomic.Int32 // requests that went on from somewhere
	bad    atomic.Bool  // layers are answered with other bytes
	login  string       // "": none
	first  string       // digest of the first layer
}

// newRepository starts one. tls says whether it is encrypted.
func newRepository(t *testing.T, tls bool) *repository {
	t.Helper()
	r := &repository{image: imageOf(t, "amd64", layer(t, file("a", strings.Repeat("content ", 50_000))), layer(t, file("b", "2")))}
	m, err := r.image.Manifest()
	must(t, err)
	r.first = m.Layers[0].Digest.String()
	inner := server.New(server.Logger(log.New(io.Discard, "", 0)))
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.serve(inner, w, req) })
	if tls {
		r.server = httptest.NewUnstartedServer(handler)
		r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
		r.server.StartTLS()
	} else {
		r.server = httptest.NewServer(handler)
	}
	t.Cleanup(r.server.Close)
	ref, err := name.NewTag(r.server.Listener.Addr().String()+"/os/hpc:1", name.Insecure)
	must(t, err)
	must(t, remote.Write(ref, r.image, remote.WithTransport(r.server.Client().Transport)))
	return r
}

func (r *repository) serve(inner http.Handler, w http.ResponseWriter, req *http.Request) {
	if r.login != "" {
		if user, password, _ := req.BasicAuth(); user+":"+password != r.login {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}`, http.StatusUnauthorized)
			return
		}
	}
	if req.Method == http.MethodGet && req.Header.Get("Range") != "" {
		r.ranges.Add(1)
	}
	if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, r.first) {
		switch {
		case r.bad.Load():
			w = &spoiler{ResponseWriter: w}
		case r.cuts.Add(-1) >= 0:
			w = &cutter{ResponseWriter: w, left: 1000}
		case r.stalls.Add(-1) >= 0:
			w = &cutter{ResponseWriter: w, left: 1000, stall: req.Context().Done()}
		}
	}
	inner.ServeHTTP(w, req)
}

// cutter answers some bytes, then ends the connection, or says nothing any more.
type cutter struct {
	http.ResponseWriter
	left  int
	stall <-chan struct{}
}

func (c *cutter) Write(b []byte) (int, error) {
	n := min(len(b), c.left)
	c.left -= n
	if _, err := c.ResponseWriter.Write(b[:n]); err != nil {
		return n, err
	}
	if c.left == 0 {
		c.ResponseWriter.(http.Flusher).Flush()
		if c.stall != nil {
			<-c.stall
		}
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

type spoiler struct{ http.ResponseWriter }

func (s *spoiler) Write(b []byte) (int, error) { return s.ResponseWriter.Write(make([]byte, len(b))) }

func (r *repository) source(t *testing.T) string {
	return "docker://" + r.server.Listener.Addr().String() + "/os/hpc:1@" + digestText(t, r.image)
}

// trusted names the CA of the server.
func (r *repository) trusted(i *inventory.Image) {
	i.Registry.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw}))
}

func plainHTTP(i *inventory.Image) { i.Registry.PlainHTTP = true }

func TestRegistry(t *testing.T) {
	t.Parallel()
	r, clear := newRepository(t, true), newRepository(t, false)
	for name, b := range map[string]*builder{"TLS": builderOf(t, r.source(t), r.trusted), "plain HTTP": builderOf(t, clear.source(t), plainHTTP)} {
		if got, err := fetchAll(t, b); err != nil || got["b"] != "2" || len(got["a"]) != 400_000 {
			t.Errorf("%s: %d files, %v", name, len(got), err)
		}
	}
	_, err := fetchAll(t, builderOf(t, r.source(t)))
	wantError(t, err, errkind.Refused, "certificate is not trusted")
	if _, err := fetchAll(t, builderOf(t, clear.source(t))); err == nil {
		t.Error("plain HTTP is spoken though nobody asked for it")
	}
	_, err = fetchAll(t, builderOf(t, strings.Replace(r.source(t), digestText(t, r.image), noDigest, 1), r.trusted))
	wantError(t, err, errkind.NotFound, noDigest)
	r.server.Close()
	_, err = fetchAll(t, builderOf(t, r.source(t), r.trusted))
	wantError(t, err, errkind.Unreachable, r.server.Listener.Addr().String())
}

// TestLayerIsResumed: what was fetched of a layer is not fetched again, and a registry
// that damages it is found out.
func TestLayerIsResumed(t *testing.T) {
	t.Parallel()
	needRoot(t)
	open := func(r *repository) (*builder, *[]string) {
		b := builderOf(t, r.source(t), r.trusted)
		var said []string
		b.disk.Say = func(text string) { said = append(said, text) }
		b.waits = waits{time.Millisecond, 2 * time.Second}
		return b, &said
	}
	r := newRepository(t, true)
	r.cuts.Store(3)
	b, said := open(r)
	if got, err := fetchAll(t, b); err != nil || len(got["a"]) != 400_000 {
		t.Fatalf("%d files, %v", len(got), err)
	}
	if r.ranges.Load() < 3 || !strings.Contains(fmt.Sprint(*said), "trying again") {
		t.Errorf("%d requests went on from somewhere; said %q", r.ranges.Load(), *said)
	}
	r.cuts.Store(0)
	r.stalls.Store(1)
	b, said = open(r)
	if got, err := fetchAll(t, b); err != nil || len(got["a"]) != 400_000 || !strings.Contains(fmt.Sprint(*said), "no byte came in 2s") {
		t.Errorf("after a stall: %d files, %v, said %q", len(got), err, *said)
	}
	r.cuts.Store(1000)
	b, _ = open(r)
	_, err := fetchAll(t, b)
	wantError(t, err, errkind.Unreachable, "after 6 tries", "layer 1")
	r.cuts.Store(0)
	r.bad.Store(true)
	b, _ = open(r)
	_, err = fetchAll(t, b)
	wantError(t, err, errkind.Corrupt, "layer 1", "the manifest says")
	if left, err := os.ReadDir(filepath.Join(b.downloads(), "blobs", "sha256")); err != nil || len(left) > 0 {
		t.Errorf("the damaged layer is left: %v, %v", left, err)
	}
}

// What was fetched before a build stays there: a fetch that was stopped goes on in the
// middle of a layer, and the build asks the registry for nothing more.
func TestFetchAhead(t *testing.T) {
	t.Parallel()
	r := newRepository(t, false)
	recipe := builderOf(t, r.source(t), plainHTTP).recipe
	dir := t.TempDir()
	blob := filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(r.first, "sha256:"))
	ctx, cancel := context.WithCancel(t.Context())
	r.cuts.Store(1)
	err := recipe.Fetch(ctx, dir, func(text string) {
		if strings.Contains(text, "trying again") {
			cancel()
		}
	})
	if err == nil {
		t.Fatal("it was stopped in the middle, and says nothing")
	}
	if info, err := os.Stat(blob); err != nil || info.Size() == 0 {
		t.Fatalf("nothing stayed of the first layer: %v", err)
	}
	must(t, recipe.Fetch(t.Context(), dir, func(string) {}))
	if r.ranges.Load() == 0 {
		t.Error("it began from the start")
	}
	r.server.Close()
	b := builderOf(t, r.source(t), plainHTTP)
	b.recipe = recipe.WithDownloads(dir).(Recipe)
	if got, err := fetchAll(t, b); err != nil || len(got) != 2 {
		t.Errorf("%d layers, %v", len(got), err)
	}
	if err := os.WriteFile(blob, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	b = builderOf(t, r.source(t), plainHTTP)
	b.recipe = recipe.WithDownloads(dir).(Recipe)
	_, err = fetchAll(t, b)
	wantError(t, err, errkind.Corrupt, "the manifest says")
	if _, err := os.Stat(blob); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the damaged layer is left: %v", err)
	}
	_, err = fetchAll(t, b)
	wantError(t, err, errkind.Unreachable) // it is asked for again
}

func TestRegistryLogin(t *testing.T) {
	t.Parallel()
	r := newRepository(t, true)
	r.login = "reader:hunter2-wrong-horse"
	login := func(i *inventory.Image) { i.Registry.Username, i.Registry.Password = "reader", "env:REGISTRY" }
	try := func(password string) error {
		b := builderOf(t, r.source(t), r.trusted, login)
		b.recipe = b.recipe.WithSecrets(func(ref secret.Ref) (secret.Value, error) {
			if ref != "env:REGISTRY" {
				t.Errorf("asked for %q", ref)
			}
			return secret.NewValue(password), nil
		}).(Recipe)
		_, err := fetchAll(t, b)
		return err
	}
	if err := try("hunter2-wrong-horse"); err != nil {
		t.Error(err)
	}
	err := try("hunter3")
	wantError(t, err, errkind.Auth, "401", "who are you")
	if strings.Contains(err.Error(), "hunter3") {
		t.Errorf("the password is in %q", err)
	}
	_, err = fetchAll(t, builderOf(t, r.source(t), r.trusted))
	wantError(t, err, errkind.Auth, "401")
	if !strings.Contains(errkind.Action(err), "password = secret(...)") {
		t.Errorf("the action is %q", errkind.Action(err))
	}
}

// TestRedirects: a registry may send on to other servers for layers; what was to be
// encrypted stays so, and the password does not go along.
func TestRedirects(t *testing.T) {
	t.Parallel()
	g := guard{host: "registry.example", inner: roundTrip(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
	})}
	for url, want := range map[string]string{
		"https://registry.example/v2/": "https", "http://registry.example/v2/": "https", "https://blobs.example/x": "https", "http://blobs.example/x": "",
	} {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		must(t, err)
		resp, err := g.RoundTrip(req)
		if (err == nil) != (want != "") || err == nil && resp.Request.URL.Scheme != want {
			t.Errorf("%s: %v, %v", url, resp, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
