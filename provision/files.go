package provision

import (
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// Prefixes of what is served below the HTTP root beside the boot files.
const (
	imagesPrefix = "/images/"
	repoPrefix   = "/repo/"
)

// repoFiles serves the package repositories: plain files below dir, no listings,
// nothing hidden.
func repoFiles(dir fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Clean(strings.TrimPrefix(r.URL.Path, repoPrefix))
		info, err := fs.Stat(dir, name)
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(path.Base(name), ".") {
			http.NotFound(w, r)
			return
		}
		http.ServeFileFS(w, r, dir, name)
	})
}
