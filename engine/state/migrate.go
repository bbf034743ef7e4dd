// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"
	"os"
)

// migrateFile brings an older file to this format before it is opened for writing.
// The old one stays beside it as state.db.format-N; what goes wrong leaves it
// where it was. It returns the old format, 0 when there was nothing to do.
func migrateFile(path string, found *shape) (from int, err error) {
	var format, minimum int
	if _, err := fmt.Sscanf(found.meta[string(metaFormat)]+" "+found.meta[string(metaReader)], "%d %d", &format, &minimum); err != nil {
		return 0, nil // opening it says what is wrong
	}
	if format >= Format || format < 1 {
		return 0, nil
	}
	old, err := OpenReadOnly(path)
	if err != nil {
		return 0, err
	}
	next := path + ".next"
	err = old.rewrite(next, keep{})
	if errClose := old.Close(); err == nil {
		err = errClose
	}
	if err == nil {
		_, err = VerifyFile(context.Background(), next)
	}
	if err == nil {
		err = installFile(next, path, OldFormatPath(path, format))
	}
	if err != nil {
		_ = os.Remove(next)
		return 0, fmt.Errorf("state: bring %s from format %d to %d: %w", path, format, Format, err)
	}
	return format, nil
}

// OldFormatPath is the name under which a file of an older format stays after it was
// migrated.
func OldFormatPath(path string, format int) string { return fmt.Sprintf("%s.format-%d", path, format) }
