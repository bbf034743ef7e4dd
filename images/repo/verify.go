// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Verify reads the whole repository: InRelease must be signed by the key, the
// index must be what it says, and every package what the index says. What differs
// is errkind.Corrupt and names the file.
func (r Repo) Verify(ctx context.Context, key *Key) error {
	signed, err := os.ReadFile(filepath.Join(r.Dir, inRelease))
	if err != nil {
		return r.damaged("%w", err)
	}
	text, err := key.open(signed)
	if err != nil {
		return r.damaged("%s: %w", inRelease, err)
	}
	files, err := parseRelease(text)
	if err != nil {
		return r.damaged("%w", err)
	}
	if err := r.compare(ctx, files, packages, packagesGz); err != nil {
		return err
	}
	index, err := os.ReadFile(filepath.Join(r.Dir, packages))
	if err != nil {
		return r.damaged("%w", err)
	}
	if sum := sha256.Sum256(index); r.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return r.damaged("%s is not the index that the folder is named after", packages)
	}
	debs, err := parsePackages(index)
	if err != nil {
		return r.damaged("%w", err)
	}
	if len(debs) != len(r.Packages) {
		return r.damaged("%s lists %d packages, not %d", packages, len(debs), len(r.Packages))
	}
	return r.compare(ctx, debs)
}

// compare reads files and compares them with their entries. When names are given
// the entries must be exactly these.
func (r Repo) compare(ctx context.Context, files []entry, names ...string) error {
	listed := map[string]bool{}
	for _, f := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !filepath.IsLocal(f.name) || path.Clean(f.name) != f.name {
			return r.damaged("file name %q", f.name)
		}
		size, sum, err := folder.Sum(filepath.Join(r.Dir, filepath.FromSlash(f.name)))
		if err != nil {
			return r.damaged("%w", err)
		}
		if size != f.size || sum != f.sum {
			return r.damaged("%s has %d bytes with SHA-256 %s, not %d bytes with %s", f.name, size, sum, f.size, f.sum)
		}
		listed[f.name] = true
	}
	for _, name := range names {
		if !listed[name] {
			return r.damaged("%s does not list %s", inRelease, name)
		}
	}
	return nil
}

func (r Repo) damaged(format string, args ...any) error {
	return errkind.New(errkind.Corrupt, "repository %s is damaged: %w", r.Name, fmt.Errorf(format, args...)).
		Do("Check the controller's disk and memory; the next apply builds the repository again.")
}

// Handler serves GET and HEAD of PREFIX/NAME/FILE from the repositories in dir,
// always the current one of each name. It lists no folders.
func Handler(dir, prefix string) http.Handler {
	return http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		name, file, _ := strings.Cut(path.Clean(strings.TrimPrefix(r.URL.Path, "/")), "/")
		if !isWord(name, "-_") || !isServable(file) {
			http.NotFound(w, r)
			return
		}
		_, at, err := currentRepo(filepath.Join(dir, name))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		serveFile(w, r, filepath.Join(at, filepath.FromSlash(file)))
	}))
}

// isServable reports whether a file of a repository is for nodes.
func isServable(file string) bool {
	switch file {
	case inRelease, packages, packagesGz, publicKey:
		return true
	}
	deb, ok := strings.CutPrefix(file, pool+"/")
	return ok && strings.HasSuffix(deb, ".deb") && !strings.Contains(deb, "/")
}

func serveFile(w http.ResponseWriter, r *http.Request, name string) {
	f, err := os.Open(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", info.ModTime(), f)
}
