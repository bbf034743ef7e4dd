// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Verify reads the whole repository: InRelease must be signed by the key, the
// index must be what it says, and every package what the index says. What differs
// is errkind.Corrupt and names the file.
func (r Repo) Verify(ctx context.Context, key *Key) error {
	if r.isDnf() {
		return r.verifyDnf(ctx, key)
	}
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
	if r.Digest != digestOf(index) {
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

// isDnf reports whether the repository is one of dnf.
func (r Repo) isDnf() bool {
	_, err := os.Stat(filepath.Join(r.Dir, repodata.Index))
	return err == nil
}

// verifyDnf is Verify of a repository of dnf.
func (r Repo) verifyDnf(ctx context.Context, key *Key) error {
	index, err := os.ReadFile(filepath.Join(r.Dir, repodata.Index))
	if err != nil {
		return r.damaged("%w", err)
	}
	signed, err := os.ReadFile(filepath.Join(r.Dir, repodata.Signature))
	if err != nil {
		return r.damaged("%w", err)
	}
	if err := key.checkDetached(index, signed); err != nil {
		return r.damaged("%s: %w", repodata.Index, err)
	}
	if r.Digest != digestOf(index) {
		return r.damaged("%s is not the index that the folder is named after", repodata.Index)
	}
	files, err := repodata.ParseIndex(index)
	if err != nil {
		return r.damaged("%w", err)
	}
	var entries []entry
	for _, f := range files {
		entries = append(entries, entry{name: f.Name, size: f.Size, sum: f.Sum})
	}
	if err := r.compare(ctx, entries); err != nil {
		return err
	}
	list, err := readPrimary(r.Dir)
	if err != nil {
		return r.damaged("%w", err)
	}
	if len(list) != len(r.Packages) {
		return r.damaged("its index lists %d packages, not %d", len(list), len(r.Packages))
	}
	entries = nil
	for _, p := range list {
		entries = append(entries, entry{name: p.File, size: p.Size, sum: p.Sum})
	}
	return r.compare(ctx, entries)
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
	case inRelease, packages, packagesGz, publicKey, repodata.Index, repodata.Signature:
		return true
	}
	if name, ok := strings.CutPrefix(file, path.Dir(repodata.Index)+"/"); ok {
		return strings.HasSuffix(name, ".xml.gz") && !strings.Contains(name, "/")
	}
	name, ok := strings.CutPrefix(file, pool+"/")
	return ok && (strings.HasSuffix(name, ".deb") || strings.HasSuffix(name, ".rpm")) && !strings.Contains(name, "/")
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
