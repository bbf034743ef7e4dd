// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/lock"
)

// readLock reads ironrail.lock, when the site has one. One that cannot be read
// leaves none: what depends on it is not checked.
func (l *loader) readLock() {
	src, err := language.ReadFile(l.fsys, lock.File, lock.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		l.inv.Lock = &lock.Lock{}
		return
	}
	if err != nil {
		reason := err
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			reason = p.Err
		}
		l.diags.Add("lock.syntax", hcl.Range{Filename: lock.File, Start: hcl.InitialPos, End: hcl.InitialPos}, "Lock file cannot be read", fmt.Sprintf("%s cannot be read: %s.", lock.File, reason))
		return
	}
	l.result.Files[lock.File] = src
	read, found := lock.Parse(src)
	*l.diags = append(*l.diags, found...)
	if len(found) == 0 {
		l.inv.Lock = read
	}
}
