// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/images/internal/download"
	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/internal/errkind"
)

// fetch brings the source here and checks what it is.
func (b *builder) fetch(ctx context.Context) error {
	if err := b.readSigned(ctx); err != nil { // small, and before what is large
		return err
	}
	sum := newSums(b.signed.sums.SHA512 != "")
	if isURL(b.recipe.Source) {
		b.source = filepath.Join(b.downloads(), "source")
		if err := b.download(ctx, sum); err != nil {
			return err
		}
	} else {
		b.source = folder.Path(b.recipe.Site, b.recipe.Source)
		if err := b.hashFile(ctx, sum); err != nil {
			return err
		}
	}
	if got := sum.checksum(); got != b.recipe.Checksum {
		if isURL(b.recipe.Source) {
			os.Remove(b.source) // what is not wanted is not continued; a file that stays is refused again
		}
		return errkind.New(errkind.Mismatch, "%s has checksum %s; the site's files say %s", b.recipe.Source, got, b.recipe.Checksum).
			Do("Compare both with what the vendor publishes, best over another way. The file may be a newer one of the same name, cut off, or not what it is said to be. Nothing was taken over.")
	}
	return b.compareSigned(ctx, sum.sums())
}

// downloads is the folder of what is fetched.
func (b *builder) downloads() string { return cmp.Or(b.recipe.downloads, b.dir) }

// sums hash a file by every function that something is compared by. It implements
// download.Sum.
type sums struct {
	io.Writer
	sha256, sha512 hash.Hash // sha512 is nil where nothing needs it
}

func newSums(needs512 bool) *sums {
	s := &sums{sha256: sha256.New()}
	s.Writer = s.sha256
	if needs512 {
		s.sha512 = sha512.New()
		s.Writer = io.MultiWriter(s.sha256, s.sha512)
	}
	return s
}

// Reset implements download.Sum.
func (s *sums) Reset() {
	s.sha256.Reset()
	if s.sha512 != nil {
		s.sha512.Reset()
	}
}

// sums are the checksums of what was hashed.
func (s *sums) sums() signature.Sums {
	out := signature.Sums{SHA256: hex.EncodeToString(s.sha256.Sum(nil))}
	if s.sha512 != nil {
		out.SHA512 = hex.EncodeToString(s.sha512.Sum(nil))
	}
	return out
}

// checksum is sha256:HEX of what was hashed.
func (s *sums) checksum() string { return "sha256:" + s.sums().SHA256 }

// hashFile reads a source that is a file of this controller.
func (b *builder) hashFile(ctx context.Context, sum io.Writer) error {
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
func (b *builder) download(ctx context.Context, sum *sums) error {
	err := download.File{
		URL: b.recipe.Source, To: b.source, Sum: sum, Say: b.say,
		Whole: func() bool { return sum.checksum() == b.recipe.Checksum },
	}.Fetch(ctx)
	if errkind.Of(err) == errkind.NotFound {
		return errkind.New(errkind.NotFound, "%w", err).Do("Vendors remove old images: take a newer one with its checksum, or the old one from a mirror.")
	}
	return err
}
