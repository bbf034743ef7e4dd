// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
)

// Deadlines of a registry. A layer has none as a whole: it may be large and the way slow.
const (
	dialTimeout   = 30 * time.Second
	answerTimeout = 60 * time.Second
	idleTimeout   = 60 * time.Second // between two bytes of a layer
	layerTries    = 6
)

// access is how a registry is reached.
type access struct {
	ca        string // PEM, beside the authorities that the controller trusts
	plainHTTP bool
	username  string
	password  secret.Value
}

// registry is one repository that an image is fetched from.
type registry struct {
	repo   name.Repository
	client http.RoundTripper // asks with the token or password
	waits  waits
	say    func(string)
}

// waits are how long a registry is waited for; 0: the default.
type waits struct {
	retry time.Duration // before the second try of a layer; it doubles with each
	idle  time.Duration // between two bytes of a layer
}

// openRegistry reaches a repository: it finds out how to log in, and logs in.
func openRegistry(ctx context.Context, at string, o access, w waits) (*registry, error) {
	opts := []name.Option{name.StrictValidation}
	if o.plainHTTP {
		opts = append(opts, name.Insecure)
	}
	repo, err := name.NewRepository(at, opts...)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "%w", err)
	}
	base, err := newTransport(repo.RegistryStr(), o)
	if err != nil {
		return nil, err
	}
	auth := authn.Anonymous
	if o.username != "" {
		auth = &authn.Basic{Username: o.username, Password: o.password.Reveal()}
	}
	t, err := transport.NewWithContext(ctx, repo.Registry, auth, base, []string{repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, registryError(repo.RegistryStr(), err)
	}
	return &registry{repo: repo, client: t, waits: waits{cmp.Or(w.retry, time.Second), cmp.Or(w.idle, idleTimeout)}}, nil
}

// get fetches the manifest or index of a digest.
func (r *registry) get(ctx context.Context, digest string) (*remote.Descriptor, error) {
	d, err := remote.Get(r.repo.Digest(digest), remote.WithTransport(r.client), remote.WithContext(ctx), remote.WithJobs(1))
	if err != nil {
		return nil, registryError(r.repo.String(), err)
	}
	return d, nil
}

// registryError gives an error of a registry its kind. What the registry says is quoted.
func registryError(what string, err error) error {
	if e, ok := errors.AsType[*transport.Error](err); ok {
		switch e.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return errkind.New(errkind.Auth, "registry: %s answers %d: %q", what, e.StatusCode, e.Error()).
				Do("Give the image block a username and a password = secret(...) that may read the repository.")
		case http.StatusNotFound:
			return errkind.New(errkind.NotFound, "registry: %s answers 404: %q", what, e.Error()).
				Do("Correct the source of the image: `skopeo inspect SOURCE` shows what the registry has.")
		}
		return errkind.New(errkind.Unreachable, "registry: %s answers %d: %q", what, e.StatusCode, e.Error())
	}
	if errkind.Of(err) != errkind.Internal {
		return fmt.Errorf("registry: %s: %w", what, err)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return errkind.New(errkind.Refused, "registry: %s: its certificate is not trusted: %q", what, err.Error()).
			Do("Name the CA that signed it: ca = file(\"registry-ca.pem\").")
	}
	return errkind.New(errkind.Unreachable, "registry: %s: %q", what, err.Error())
}

// guard sends requests to the registry by the scheme that the site asked for, and lets
// nothing go in clear that was not to: neither a redirect nor a login.
type guard struct {
	inner     http.RoundTripper
	host      string
	plainHTTP bool
}

// newTransport makes the connections to a registry.
func newTransport(host string, o access) (http.RoundTripper, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if o.ca != "" && !pool.AppendCertsFromPEM([]byte(o.ca)) {
		return nil, errkind.New(errkind.Invalid, "ca holds no certificate in PEM form")
	}
	return guard{host: host, plainHTTP: o.plainHTTP, inner: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: answerTimeout,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   2,
		IdleConnTimeout:       idleTimeout,
	}}, nil
}

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	scheme := "https"
	if g.plainHTTP && (req.URL.Host == g.host || req.URL.Scheme == "http") {
		scheme = "http"
	}
	if req.URL.Scheme != scheme {
		if req.URL.Host != g.host {
			return nil, errkind.New(errkind.Refused, "it sends on to %q, which is not encrypted", req.URL.Redacted()).
				Do("Set plain_http = true in the image block where this is meant.")
		}
		req = req.Clone(req.Context())
		req.URL.Scheme = scheme
	}
	return g.inner.RoundTrip(req)
}

// fetchLayers brings the layers of an image into a folder of blobs.
func (r *registry) fetchLayers(ctx context.Context, layers []v1.Descriptor, blobs string) error {
	for n, d := range layers {
		r.say(fmt.Sprintf("layer %d of %d, %s: %.1f MiB", n+1, len(layers), short(d.Digest.String()), float64(d.Size)/(1<<20)))
		if err := r.fetch(ctx, d.Digest, d.Size, filepath.Join(blobs, d.Digest.Hex)); err != nil {
			return fmt.Errorf("layer %d (%s): %w", n+1, d.Digest, err)
		}
	}
	return nil
}

// fetch writes a blob to a file and verifies its digest. What was fetched of it stays in
// the file, and the next try goes on from there.
func (r *registry) fetch(ctx context.Context, h v1.Hash, size int64, to string) error {
	var last error
	wait := r.waits.retry
	for range layerTries {
		if last != nil {
			r.say(fmt.Sprintf("layer %s: %v; trying again in %s", short(h.String()), last, wait))
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			wait *= 2
		}
		whole, err := r.fetchRest(ctx, h, size, to)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && whole {
			return verifyBlob(to, h, size)
		}
		if last = err; err == nil {
			last = errkind.New(errkind.Unreachable, "the registry ended it early")
		}
		if k := errkind.Of(last); k != errkind.Unreachable && k != errkind.Timeout {
			return last
		}
	}
	return fmt.Errorf("after %d tries: %w", layerTries, last)
}

// fetchRest fetches what is missing of a blob. It reports whether the file is whole.
func (r *registry) fetchRest(ctx context.Context, h v1.Hash, size int64, to string) (whole bool, err error) {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil || have >= size {
		return have == size, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	url := fmt.Sprintf("%s://%s/v2/%s/blobs/%s", r.repo.Scheme(), r.repo.RegistryStr(), r.repo.RepositoryStr(), h)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", have, size-1))
	}
	resp, err := (&http.Client{Transport: r.client}).Do(req)
	if err != nil {
		return false, registryError(r.repo.String(), err)
	}
	defer resp.Body.Close()
	if err := transport.CheckError(resp, http.StatusOK, http.StatusPartialContent); err != nil {
		return false, registryError(r.repo.String(), err)
	}
	if resp.StatusCode == http.StatusOK && have > 0 { // it does not resume
		have = 0
		if err := errors.Join(f.Truncate(0), seekStart(f)); err != nil {
			return false, err
		}
	}
	idle := time.AfterFunc(r.waits.idle, func() {
		cancel(errkind.New(errkind.Timeout, "no byte came in %s", r.waits.idle))
	})
	defer idle.Stop()
	far := &meter.Meter{Say: r.say, What: "fetched", Total: size, Done: have}
	n, err := io.Copy(io.MultiWriter(f, far), meter.OnRead(io.LimitReader(resp.Body, size-have+1), func() { idle.Reset(r.waits.idle) }))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return false, cause
		}
		return false, errkind.New(errkind.Unreachable, "%w", err)
	}
	return have+n == size, nil
}

func seekStart(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// verifyBlob compares a file with its digest. One that differs is removed, so that it is
// not continued.
func verifyBlob(path string, h v1.Hash, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); n != size || h.Algorithm != "sha256" || got != h.Hex {
		return errors.Join(errkind.New(errkind.Corrupt, "it has %d bytes and SHA-256 %s; the manifest says %d and %s", n, got, size, h), os.Remove(path))
	}
	return nil
}

// short is the beginning of a digest, as people compare it.
func short(digest string) string { return digest[:min(len(digest), len("sha256:")+12)] }
