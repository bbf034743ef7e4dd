// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/ironrail/ironrail/images/internal/meter"
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
		b.source = filepath.Join(cmp.Or(b.recipe.downloads, b.dir), "source")
		if err := b.download(ctx, sum); err != nil {
			return err
		}
	} else {
		b.source = b.recipe.path()
		if err := b.hashFile(ctx, sum); err != nil {
			return err
		}
	}
	if got := checksumOf(sum); got != b.recipe.Checksum {
		if b.recipe.isURL() {
			os.Remove(b.source) // what is not wanted is not continued; a file that stays is refused again
		}
		return errkind.New(errkind.Mismatch, "%s has checksum %s; the site's files say %s", b.recipe.Source, got, b.recipe.Checksum).
			Do("Compare both with what the vendor publishes, best over another way. The file may be a newer one of the same name, cut off, or not what it is said to be. Nothing was taken over.")
	}
	return nil
}

// checksumOf is sha256:HEX of what was hashed.
func checksumOf(sum hash.Hash) string { return "sha256:" + hex.EncodeToString(sum.Sum(nil)) }

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
	m := &meter.Meter{Say: b.say, What: "read", Total: info.Size()}
	_, err = io.Copy(io.MultiWriter(sum, m), meter.WithContext(ctx, f))
	return err
}

// download fetches the source; a transfer that breaks off goes on where it was, also one
// of an earlier build.
func (b *builder) download(ctx context.Context, sum hash.Hash) error {
	out, err := os.OpenFile(b.source, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	had, err := io.Copy(sum, meter.WithContext(ctx, out))
	if err != nil {
		return err
	}
	if checksumOf(sum) == b.recipe.Checksum {
		b.say("the source was fetched before")
		return nil
	}
	m := &meter.Meter{Say: b.say, What: "fetched", Done: had}
	to := io.MultiWriter(out, sum, m)
	var failed error
	for range fetchTries {
		before := m.Done
		err := b.get(ctx, to, m)
		if err == nil {
			return out.Close()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, errWhole) {
			sum.Reset()
			*m = meter.Meter{Say: b.say, What: "fetched"}
			if _, err := out.Seek(0, io.SeekStart); err != nil {
				return err
			}
			if err := out.Truncate(0); err != nil {
				return err
			}
			continue
		}
		if failed = err; m.Done == before || errkind.Of(err) == errkind.NotFound {
			break // nothing came
		}
		b.say(fmt.Sprintf("the source broke off after %d MiB: %v; going on", m.Done>>20, err))
	}
	return fmt.Errorf("%s: %w", b.recipe.Source, failed)
}

// errWhole says that a server gives the file only from its start, or has a shorter one.
var errWhole = errkind.New(errkind.Unsupported, "the server does not continue the file")

// get asks for what is missing and writes it to to.
func (b *builder) get(ctx context.Context, to io.Writer, m *meter.Meter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(stall, func() { cancel(errkind.New(errkind.Timeout, "nothing came for %s", stall)) })
	defer watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.recipe.Source, nil)
	if err != nil {
		return err
	}
	if m.Done > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", m.Done))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer resp.Body.Close()
	switch want := map[bool]int{false: http.StatusOK, true: http.StatusPartialContent}[m.Done > 0]; {
	case resp.StatusCode == http.StatusNotFound:
		return errkind.New(errkind.NotFound, "there is no such file (404)").Do("Vendors remove old images: take a newer one with its checksum, or the old one from a mirror.")
	case m.Done > 0 && (resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable):
		return errWhole
	case resp.StatusCode != want:
		return errkind.New(errkind.Refused, "the server answers %s", resp.Status)
	}
	if m.Total == 0 && resp.ContentLength > 0 {
		m.Total = m.Done + resp.ContentLength
	}
	_, err = io.Copy(to, meter.OnRead(resp.Body, func() { watch.Reset(stall) }))
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if m.Total > 0 && m.Done < m.Total {
		return io.ErrUnexpectedEOF
	}
	return nil
}
