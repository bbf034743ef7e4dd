// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// fetchTries is how often a source may break off, each time further on than before.
const fetchTries = 20

// stall is how long a source may give nothing.
const stall = time.Minute

// fetch brings the source here and checks what it is.
func (b *builder) fetch(ctx context.Context) error {
	sum := sha256.New()
	if b.recipe.isURL() {
		b.source = b.path("source")
		if err := b.download(ctx, sum); err != nil {
			return err
		}
	} else {
		b.source = b.recipe.path()
		if err := b.hashFile(ctx, sum); err != nil {
			return err
		}
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != b.recipe.Checksum {
		return errkind.New(errkind.Mismatch, "%s has checksum %s; the site's files say %s", b.recipe.Source, got, b.recipe.Checksum).
			Do("Compare both with what the vendor publishes, best over another way. The file may be a newer one of the same name, cut off, or not what it is said to be. Nothing was taken over.")
	}
	return nil
}

// hashFile reads a source that is a file of this controller.
func (b *builder) hashFile(ctx context.Context, sum hash.Hash) error {
	f, err := os.Open(b.source)
	if err != nil {
		return errkind.New(errkind.NotFound, "source %q: %w", b.recipe.Source, err).Do("Paths are relative to the folder of the site.")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errkind.New(errkind.Refused, "source %s is no file", b.source)
	}
	m := &meter{say: b.say, what: "read", total: info.Size()}
	_, err = io.Copy(io.MultiWriter(sum, m), &reader{ctx, f})
	return err
}

// download fetches the source; a transfer that breaks off goes on where it was.
func (b *builder) download(ctx context.Context, sum hash.Hash) error {
	out, err := os.Create(b.source)
	if err != nil {
		return err
	}
	defer out.Close()
	m := &meter{say: b.say, what: "fetched"}
	to := io.MultiWriter(out, sum, m)
	var failed error
	for range fetchTries {
		before := m.done
		err := b.get(ctx, to, m)
		if err == nil {
			return out.Close()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed = err; m.done == before || errkind.Of(err) == errkind.NotFound {
			break // nothing came
		}
		b.say(fmt.Sprintf("the source broke off after %d MiB: %v; going on", m.done>>20, err))
	}
	return fmt.Errorf("%s: %w", b.recipe.Source, failed)
}

// get asks for what is missing and writes it to to.
func (b *builder) get(ctx context.Context, to io.Writer, m *meter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(stall, func() { cancel(errkind.New(errkind.Timeout, "nothing came for %s", stall)) })
	defer watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.recipe.Source, nil)
	if err != nil {
		return err
	}
	if m.done > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", m.done))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer resp.Body.Close()
	switch want := map[bool]int{false: http.StatusOK, true: http.StatusPartialContent}[m.done > 0]; {
	case resp.StatusCode == http.StatusNotFound:
		return errkind.New(errkind.NotFound, "there is no such file (404)").Do("Vendors remove old images: take a newer one with its checksum, or the old one from a mirror.")
	case resp.StatusCode != want:
		return errkind.New(errkind.Refused, "the server answers %s", resp.Status)
	}
	if m.total == 0 && resp.ContentLength > 0 {
		m.total = resp.ContentLength
	}
	_, err = io.Copy(to, &progressReader{resp.Body, func() { watch.Reset(stall) }})
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if m.total > 0 && m.done < m.total {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// progressReader calls came for whatever came.
type progressReader struct {
	r    io.Reader
	came func()
}

func (r *progressReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.came()
	}
	return n, err
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

// every is how often a meter says how far it is.
const every = 5 * time.Second

// meter says how much came, how fast, and how long the rest takes.
type meter struct {
	say         func(string)
	what        string
	done, total int64 // bytes; total 0: not known
	began, last time.Time
}

// Write implements io.Writer: it only counts.
func (m *meter) Write(p []byte) (int, error) {
	m.add(int64(len(p)))
	return len(p), nil
}

// add counts n bytes.
func (m *meter) add(n int64) {
	now := time.Now()
	if m.began.IsZero() {
		m.began, m.last = now, now
	}
	m.done += n
	if now.Sub(m.last) >= every {
		m.last = now
		m.say(m.line(now))
	}
}

// line is such as "fetched 120 of 600 MiB, 24 MiB/s, 20s left".
func (m *meter) line(now time.Time) string {
	rate := float64(m.done) / now.Sub(m.began).Seconds()
	if m.total <= 0 {
		return fmt.Sprintf("%s %d MiB, %.0f MiB/s", m.what, m.done>>20, rate/(1<<20))
	}
	left := time.Duration(float64(m.total-m.done) / rate * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%s %d of %d MiB, %.0f MiB/s, %s left", m.what, m.done>>20, m.total>>20, rate/(1<<20), left)
}
