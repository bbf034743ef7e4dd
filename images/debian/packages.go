// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/images/internal/download"
	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// What lies in the folder of downloads. apt takes a file of its cache by name and size:
// what is in archivesDir was compared with the SHA-256 of the signed lists, and nothing
// else is handed on.
const (
	indexDir    = "index"    // lists and packages of one reading
	archivesDir = "archives" // whole packages, named as in apt's cache
	partialDir  = "partial"  // those that are not whole yet

	listsDir     = "lists"         // of indexDir: apt's /var/lib/apt/lists
	packagesFile = "packages.json" // of indexDir: []aptFile
)

// transfers is how many packages are fetched at once.
const transfers = 4

// maxDeb bounds a package; the largest of Debian have 1.5 GB.
const maxDeb = 8 << 30

// aptFile is a package as the signed lists have it.
type aptFile struct {
	URL    string `json:"url"`
	Name   string `json:"name"` // in apt's cache
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hex
}

// parseURIs reads what `apt-get --print-uris` says: 'URL' NAME SIZE SHA256:HEX. Files that are no
// packages of a web server, or that the lists have no SHA-256 of, are passed over: apt
// fetches and compares them itself.
func parseURIs(said string) (all []aptFile) {
	for line := range strings.Lines(said) {
		rest, ok := strings.CutPrefix(line, "'")
		if !ok {
			continue
		}
		url, rest, ok := strings.Cut(rest, "' ")
		words := strings.Fields(rest)
		if !ok || len(words) != 3 {
			continue
		}
		size, err := strconv.ParseInt(words[1], 10, 64)
		sum, hashed := strings.CutPrefix(words[2], "SHA256:")
		f := aptFile{URL: url, Name: words[0], Size: size, SHA256: sum}
		if err == nil && hashed && f.plain() {
			all = append(all, f)
		}
	}
	return all
}

// plain reports whether a package can be fetched, and its name is one of a file.
func (f aptFile) plain() bool {
	sum, err := hex.DecodeString(f.SHA256)
	return err == nil && len(sum) == sha256.Size && f.Size > 0 && f.Size <= maxDeb &&
		(strings.HasPrefix(f.URL, "http://") || strings.HasPrefix(f.URL, "https://")) &&
		strings.HasSuffix(f.Name, ".deb") && !strings.HasPrefix(f.Name, ".") && !strings.ContainsAny(f.Name, "/\x00")
}

// cache is the folder of downloads of one recipe, and what is to be in it.
type cache struct {
	dir   string
	files []aptFile
	say   func(string)
}

// openCache returns the cache with the packages that were listed last; none, when
// nothing was. It makes the folders that are handed on.
func openCache(dir string, say func(string)) (cache, error) {
	c := cache{dir: dir, say: say}
	if err := os.MkdirAll(c.path(archivesDir), 0o755); err != nil {
		return c, err
	}
	b, err := os.ReadFile(c.path(indexDir, packagesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &c.files)
	}
	return c, err
}

func (c cache) path(elem ...string) string { return filepath.Join(append([]string{c.dir}, elem...)...) }

// fetch brings all packages. What is there already is hashed, and kept when it is right;
// packages that are no longer listed are removed. An error of kind Mismatch means that an
// archive gives another file than its signed lists describe.
func (c cache) fetch(ctx context.Context) error {
	if err := c.dropOthers(); err != nil {
		return err
	}
	missing, progress, err := c.missing(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	c.say(fmt.Sprintf("fetching %d of %d packages, %d of %d MiB", len(missing), len(c.files), (progress.m.Total-progress.m.Done)>>20, progress.m.Total>>20))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(transfers)
	for _, f := range missing {
		group.Go(func() error { return c.fetchOne(ctx, f, progress) })
	}
	return group.Wait()
}

// dropOthers removes what is not listed from the folders, and makes them.
func (c cache) dropOthers() error {
	listed := map[string]bool{}
	for _, f := range c.files {
		listed[f.Name] = true
	}
	for _, dir := range []string{archivesDir, partialDir} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(c.path(dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if listed[e.Name()] {
				continue
			}
			if err := os.RemoveAll(c.path(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing lists the packages that are not there, with a progress that counts those that
// are. A file that is not the one that the lists describe is removed.
func (c cache) missing(ctx context.Context) (all []aptFile, p *progress, err error) {
	p = &progress{m: meter.Meter{Say: c.say, What: "fetched"}}
	for _, f := range c.files {
		p.m.Total += f.Size
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		_, got, err := folder.Sum(c.path(archivesDir, f.Name))
		switch {
		case err == nil && got == f.SHA256:
			p.m.Done += f.Size
			continue
		case err == nil:
			err = os.Remove(c.path(archivesDir, f.Name))
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		}
		if err != nil {
			return nil, nil, err
		}
		if info, err := os.Stat(c.path(partialDir, f.Name)); err == nil {
			p.m.Done += min(info.Size(), f.Size)
		}
		all = append(all, f)
	}
	return all, p, nil
}

// whole reports whether every listed package is there as it is listed.
func (c cache) whole(ctx context.Context) bool {
	if len(c.files) == 0 {
		return false
	}
	missing, _, err := c.missing(ctx)
	return err == nil && len(missing) == 0
}

// fetchOne brings one package. What an earlier transfer left and what came now may not
// fit together: then it is fetched from its start, once.
func (c cache) fetchOne(ctx context.Context, f aptFile, p *progress) error {
	to := c.path(partialDir, f.Name)
	for {
		left, err := os.Stat(to)
		continued := err == nil && left.Size() > 0
		h := sha256.New()
		sum := func() string { return hex.EncodeToString(h.Sum(nil)) }
		err = download.File{URL: f.URL, To: to, Sum: h, Most: f.Size, Say: func(string) {}, Progress: p, Whole: func() bool { return sum() == f.SHA256 }}.Fetch(ctx)
		if err != nil && errkind.Of(err) != errkind.Refused {
			return err
		}
		if err == nil && sum() == f.SHA256 {
			return os.Rename(to, c.path(archivesDir, f.Name))
		}
		if e := os.Remove(to); e != nil {
			return errors.Join(err, e)
		}
		switch {
		case continued:
		case err != nil:
			return err
		default:
			return errkind.New(errkind.Mismatch, "package %s has SHA-256 %s; the signed lists of its archive say %s", f.Name, sum(), f.SHA256).
				Do("The mirror, or a cache before it, gives another file than the archive signed: name another mirror. Nothing of it was installed.")
		}
	}
}

// progress says how far all packages are. It is safe for concurrent use.
type progress struct {
	mu sync.Mutex
	m  meter.Meter
}

// Write implements io.Writer.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m.Write(b)
}

// replaceIndex puts the folder of a finished index into place.
func (c *cache) replaceIndex(from string, files []aptFile) error {
	b, err := json.MarshalIndent(files, "", "\t")
	if err != nil {
		return err
	}
	if err := durable.Write(filepath.Join(from, packagesFile), b, 0o644); err != nil {
		return err
	}
	c.files = files
	return folder.Replace(from, c.path(indexDir))
}
