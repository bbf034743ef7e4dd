// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/wire"
)

// maxManifest bounds the manifest file: about 100 bytes a chunk, so 2 TiB of image.
const maxManifest = 64 << 20

// errAbsent means that the controller does not have what was asked for. It is
// tried again a few times, since a controller that starts may not have it yet.
var errAbsent = errors.New("not there")

// fetcher reads the image over HTTP with ranges. Every read has a deadline.
type fetcher struct {
	client *http.Client
	url    string
	stall  time.Duration // a connection that gives nothing for so long is dropped
}

// open asks for the bytes from off up to, and without, end. The reader fails
// with a Timeout when nothing comes for a while. The caller closes it.
func (f fetcher) open(ctx context.Context, off, end int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(f.stall, func() { cancel(errkind.New(errkind.Timeout, "nothing came for %s", f.stall)) })
	fail := func(err error) (io.ReadCloser, error) {
		watch.Stop()
		cancel(nil)
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return fail(errkind.New(errkind.Internal, "%w", err))
	}
	if end > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, end-1))
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return fail(network(ctx, err))
	}
	if err := rangeStatus(resp, off, end); err != nil {
		resp.Body.Close()
		return fail(err)
	}
	return &stream{body: resp.Body, ctx: ctx, watch: watch, cancel: cancel, stall: f.stall}, nil
}

// rangeStatus checks that the answer is what was asked for: RFC 9110, 15.3.7. A
// whole answer (200) to a range is as good when the range begins at 0.
func rangeStatus(resp *http.Response, off, end int64) error {
	switch {
	case resp.StatusCode == http.StatusPartialContent && end > 0:
		var from int64
		if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &from); err != nil || from != off {
			return errkind.New(errkind.Internal, "asked for bytes from %d, got %q", off, resp.Header.Get("Content-Range"))
		}
		return nil
	case resp.StatusCode == http.StatusOK && off == 0:
		return nil
	case resp.StatusCode == http.StatusOK:
		return errkind.New(errkind.Unsupported, "%s does not serve ranges", resp.Request.URL.Host)
	case resp.StatusCode >= 500:
		return errkind.New(errkind.Unreachable, "answer %s", resp.Status)
	}
	return errkind.New(errkind.Refused, "answer %s: %w", resp.Status, errAbsent)
}

// network gives an error of the transport its kind.
func network(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return errkind.New(errkind.Timeout, "%w", err)
	}
	return errkind.New(errkind.Unreachable, "%w", err)
}

// stream is a body whose reads wind up the watch.
type stream struct {
	body   io.ReadCloser
	ctx    context.Context
	watch  *time.Timer
	cancel context.CancelCauseFunc
	stall  time.Duration
}

// Read is io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if n > 0 {
		s.watch.Reset(s.stall)
	}
	if err != nil && err != io.EOF {
		err = network(s.ctx, err)
	}
	return n, err
}

// Close is io.Closer.
func (s *stream) Close() error {
	s.watch.Stop()
	s.cancel(nil)
	return s.body.Close()
}

// manifestOf fetches the manifest and believes it only with the right digest and
// signature: it is what every chunk is judged by.
func (w *Writer) manifestOf(ctx context.Context, p wire.WriteParams, key []byte) (manifest.Manifest, error) {
	var m manifest.Manifest
	file, err := w.smallFile(ctx, "manifest", p.ManifestURL)
	if err != nil {
		return m, fmt.Errorf("image manifest %s: %w", p.ManifestURL, err)
	}
	verify := "Run `ironrail image verify`; the image in the controller's store is not the one in the plan."
	if got := manifest.Digest(file); got != p.Digest {
		return m, errkind.New(errkind.Mismatch, "image manifest has digest %s, the plan says %s", got, p.Digest).Do(verify)
	}
	if err := json.Unmarshal(file, &m); err != nil {
		return m, errkind.New(errkind.Corrupt, "image manifest: %w", err).Do(verify)
	}
	if err := m.Verify(key); err != nil {
		return m, errkind.New(errkind.Corrupt, "%w", err).Do(verify)
	}
	return m, nil
}

// smallFile fetches a whole file of an image. Whoever asks has its digest.
func (w *Writer) smallFile(ctx context.Context, what, url string) (file []byte, err error) {
	err = w.retry(ctx, what, func() error {
		r, err := w.fetcher(url).open(ctx, 0, 0)
		if err != nil {
			return err
		}
		defer r.Close()
		file, err = io.ReadAll(io.LimitReader(r, maxManifest))
		return err
	})
	return file, err
}

// retry calls get until it succeeds, fails for good, or StallTimeout ends.
func (w *Writer) retry(ctx context.Context, what string, get func() error) error {
	p := retrier{Writer: w}
	for {
		err := get()
		if err == nil {
			return nil
		}
		if err := p.again(ctx, what, err); err != nil {
			return err
		}
	}
}

// retrier decides how long something that fails is tried again.
type retrier struct {
	*Writer
	try   int
	since time.Time // of the first failure in a row
}

// reset forgets the failures: something came on.
func (p *retrier) reset() { p.try, p.since = 0, time.Time{} }

// again waits before the next try and returns nil, or returns why there is none.
func (p *retrier) again(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	longest := p.StallTimeout
	if longest == 0 {
		longest = 10 * time.Minute
	}
	absent := errors.Is(err, errAbsent) && p.try >= 4
	if kind := errkind.Of(err); absent || kind == errkind.Unsupported || time.Since(p.since) > longest {
		return errkind.New(kind, "%w", err).Do("Look whether the controller still serves the image; then apply again.")
	}
	p.note(fmt.Sprintf("%s: %v; trying again", what, err))
	first := p.Wait
	if first == 0 {
		first = 500 * time.Millisecond
	}
	timer := time.NewTimer(min(first<<min(p.try, 10), 15*time.Second))
	defer timer.Stop()
	p.try++
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// NewClient returns the HTTP client for images: no redirects, one connection at a
// time, HTTP/1.1, since HTTP/2 halves the rate of one large download. dial makes
// its connections; nil: those of this very node.
func NewClient(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	return &http.Client{
		Transport:     &http.Transport{DialContext: dial, Protocols: &protocols, DisableCompression: true, ReadBufferSize: 256 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
