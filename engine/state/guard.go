// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"runtime/debug"

	"github.com/ironrail/ironrail/internal/durable"
)

// guardFaults runs f, which works on the mapped file, and turns what a damaged file
// does to it (a panic, or a fault on a page that is not there) into an error.
func guardFaults(path string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = damagedError(path, fmt.Errorf("%v", v))
		}
	}()
	return f()
}

// syncDir makes the names in a folder durable.
func syncDir(path string) error {
	if err := durable.SyncFolder(path); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}
