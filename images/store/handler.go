// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Handler serves GET and HEAD of PREFIX/sha256-HEX/FILE, with ranges, from plain
// files (so that the kernel copies them with sendfile). Whatever is no file of an
// image is 404. A manifest is checked before any file of its image is served.
func (s *Store) Handler(prefix string) http.Handler {
	return http.StripPrefix(prefix, http.HandlerFunc(s.serve))
}

func (s *Store) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	folder, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	digest := strings.Replace(folder, "-", ":", 1)
	if !ok || !isDigest(digest) {
		http.NotFound(w, r)
		return
	}
	f, err := s.Open(digest, name)
	if errors.Is(err, fs.ErrNotExist) || errkind.Of(err).Base() == errkind.Mismatch {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, "the image cannot be read", http.StatusInternalServerError)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		http.Error(w, "the image cannot be read", http.StatusInternalServerError)
		return
	}
	// The digest names the bytes: a resumed download can trust it.
	w.Header().Set("ETag", `"`+folder+"/"+name+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, name, info.ModTime(), f)
}
