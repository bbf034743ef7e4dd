// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"io/fs"
	"strings"
	"sync"
)

// pathCache remembers where folders of sys and proc are whose names lead through links,
// which most of what is read there does. A tree is immutable, and what of it is
// there is asked each time. It is safe for concurrent use.
type pathCache struct{ known sync.Map } // way by the name of a folder

// cachedPath is where a folder is.
type cachedPath struct {
	real   string
	passed []*file // what must be there on the way; nil way: not to be remembered
}

// direct finds a file in a folder whose way is known; nil: look for it step by step.
func (w *pathCache) direct(k *Kernel, name string, last bool) (string, *file) {
	if w == nil || !strings.HasPrefix(name, "sys/") && !strings.HasPrefix(name, "proc/") {
		return "", nil
	}
	tree := k.node.shape.tree
	i := strings.LastIndexByte(name, '/')
	if dir := tree.files[name[:i]]; dir != nil && dir.link == "" {
		return "", nil // no link is on the way
	}
	known, ok := w.known.Load(name[:i])
	if !ok {
		known, _ = w.known.LoadOrStore(name[:i], walkTo(tree, name[:i]))
	}
	to := known.(*cachedPath)
	if to == nil {
		return "", nil
	}
	for _, f := range to.passed {
		if !f.present(k) {
			return "", nil
		}
	}
	real := joinBelow(to.real, name[i+1:])
	f := tree.files[real]
	if f == nil || f.link != "" && last || !f.present(k) {
		return "", nil
	}
	return real, f
}

// walkTo goes to a folder of a tree, as if all of it were there.
func walkTo(tree *tree, dir string) *cachedPath {
	w := &cachedPath{}
	real, f, err := resolvePath(func(name string) *file {
		f := tree.files[name]
		if f != nil && f.there != nil {
			w.passed = append(w.passed, f)
		}
		return f
	}, dir, true, false)
	if err != nil || f == nil || f.mode&fs.ModeDir == 0 {
		return nil
	}
	w.real = real
	return w
}
