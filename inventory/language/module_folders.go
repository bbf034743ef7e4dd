// SPDX-License-Identifier: Apache-2.0

package language

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory/diag"
)

// ListModules lists the folders, relative to fsys, of the modules that the files of a
// folder use, and that those use: as written, evaluating nothing. Folders outside
// of fsys are left out.
func ListModules(fsys fs.FS) []string {
	var out []string
	seen := map[string]bool{".": true}
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		var ignored diag.List
		var total sizes
		lim := Limits{}.withDefaults()
		files, err := readSources(folder{fsys: fsys, dir: queue[0]}, lim, &total, &ignored)
		if err != nil {
			continue // check says so
		}
		for _, f := range files {
			for _, source := range f.uses() {
				dir := path.Join(queue[0], filepath.ToSlash(source))
				if path.IsAbs(source) || !fs.ValidPath(dir) || seen[dir] {
					continue
				}
				seen[dir] = true
				out = append(out, dir)
				queue = append(queue, dir)
			}
		}
	}
	slices.Sort(out)
	return out
}

// uses lists the sources that the use blocks of a file name.
func (f *sourceFile) uses() []string {
	if f.body == nil {
		return nil
	}
	content, _, _ := f.body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: useRoot, LabelNames: []string{"name"}}}})
	var out []string
	for _, b := range content.Blocks {
		attrs, _ := b.Body.JustAttributes()
		if src := attrs[sourceAttr]; src != nil {
			if v, found := src.Expr.Value(nil); !found.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
				out = append(out, v.AsString())
			}
		}
	}
	return out
}
