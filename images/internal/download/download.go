// SPDX-License-Identifier: Apache-2.0

// Package download brings files of web servers to this controller. A transfer that breaks
// off is continued where it was, also by a later call.
package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/errkind"
)

// tries is how often a transfer may break off, each time further on than before.
const tries = 20

// stall is how long a server may give nothing.
const stall = time.Minute

// File is a file of a web server, and where it is brought.
type File struct {
	URL string
	To  string // path; what an earlier transfer left there is continued
	Sum Sum    // of the whole file
	// Whole reports whether Sum is that of the whole file. It is asked before anything is
	// requested; nil: nobody knows.
	Whole func() bool
	Most  int64 // bytes that the file may have; 0: any number
	Say   func(string)
	// Progress takes what comes, of a file that is one of several; nil: Say reports how far
	// this one is.
	Progress io.Writer
}

// Sum is what a file is hashed by.
type Sum interface {
	io.Writer
	Reset()
}

// Fetch brings the file. What came stays when it fails. An error of kind NotFound means
// that the server answers and has no such file, one of kind Refused that trying again
// brings nothing.
func (f File) Fetch(ctx context.Context) error {
	out, err := os.OpenFile(f.To, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	had, err := io.Copy(f.Sum, meter.WithContext(ctx, out))
	if err != nil {
		return err
	}
	if f.Whole != nil && f.Whole() {
		f.Say("it was fetched before")
		return nil
	}
	if err := f.transfer(ctx, out, had); err != nil {
		return fmt.Errorf("%s: %w", f.URL, err)
	}
	return out.Close()
}

// transfer brings what is missing behind had bytes.
func (f File) transfer(ctx context.Context, out *os.File, had int64) (err error) {
	say := f.Say
	to := []io.Writer{out, f.Sum}
	if f.Progress != nil {
		say, to = func(string) {}, append(to, f.Progress)
	}
	m := &meter.Meter{Say: say, What: "fetched", Done: had}
	all := io.MultiWriter(append(to, m)...)
	for range tries {
		before := m.Done
		switch err = f.get(ctx, all, m); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errWhole):
			f.Sum.Reset()
			*m = meter.Meter{Say: say, What: "fetched"}
			if _, err := out.Seek(0, io.SeekStart); err != nil {
				return err
			}
			if err := out.Truncate(0); err != nil {
				return err
			}
		case m.Done == before || errkind.Of(err) == errkind.NotFound || errkind.Of(err) == errkind.Refused:
			return err // nothing came, or nothing else will
		default:
			f.Say(fmt.Sprintf("the source broke off after %d MiB: %v; going on", m.Done>>20, err))
		}
	}
	return err
}

// errWhole says that a server gives the file only from its start, or has a shorter one.
var errWhole = errkind.New(errkind.Unsupported, "the server does not continue the file")

// get asks for what is missing and writes it to to.
func (f File) get(ctx context.Context, to io.Writer, m *meter.Meter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(stall, func() { cancel(errkind.New(errkind.Timeout, "nothing came for %s", stall)) })
	defer watch.Stop()
	resp, err := request(ctx, f.URL, m.Done)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer resp.Body.Close()
	if m.Total == 0 && resp.ContentLength > 0 {
		m.Total = m.Done + resp.ContentLength
	}
	var body io.Reader = meter.OnRead(resp.Body, func() { watch.Reset(stall) })
	if f.Most > 0 {
		body = io.LimitReader(body, f.Most-m.Done+1)
	}
	_, err = io.Copy(to, body)
	switch {
	case f.Most > 0 && m.Done > f.Most:
		return errkind.New(errkind.Refused, "it is larger than %d MiB", f.Most>>20)
	case err != nil:
		return errors.Join(err, context.Cause(ctx))
	case m.Total > 0 && m.Done < m.Total:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// request asks for a file from a byte on. A proxy is taken from the environment, as apt
// takes it.
func request(ctx context.Context, at string, from int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, errkind.New(errkind.Refused, "%w", err)
	}
	want := http.StatusOK
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		want = http.StatusPartialContent
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, errkind.New(errkind.Unreachable, "%s does not answer: %w", req.URL.Host, err).
			Do("Look at the network of this controller and at http_proxy and https_proxy in its environment; or bring the file here and name it.")
	}
	if resp.StatusCode == want {
		return resp, nil
	}
	resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, errkind.New(errkind.NotFound, "there is no such file (404)")
	case from > 0 && (resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable):
		return nil, errWhole
	case resp.StatusCode >= http.StatusInternalServerError:
		return nil, errkind.New(errkind.Unreachable, "the server answers %s", resp.Status).Do("Try again later, or name another mirror.")
	}
	return nil, errkind.New(errkind.Refused, "the server answers %s", resp.Status)
}

// smallLimit bounds one request for a small file.
const smallLimit = 30 * time.Second

// Small returns a file of at most most bytes. A request that fails on its way is made once
// more.
func Small(ctx context.Context, at string, most int64) (content []byte, err error) {
	for range 2 {
		content, err = small(ctx, at, most)
		if kind := errkind.Of(err); err == nil || kind == errkind.NotFound || kind == errkind.Refused || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return content, nil
}

func small(ctx context.Context, at string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, smallLimit)
	defer cancel()
	resp, err := request(ctx, at, 0)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, errkind.New(errkind.Unreachable, "%w", err).Do("Try again later, or name another mirror.")
	case int64(len(content)) > most:
		return nil, errkind.New(errkind.Refused, "it is larger than %d KiB", most>>10)
	}
	return content, nil
}
