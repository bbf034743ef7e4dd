// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"testing"
	"time"
)

// TestLookingRefusesNobody: while others look whether a state folder has an owner, it
// can be taken every time.
func TestLookingRefusesNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stop, looked := make(chan struct{}), make(chan error, 4)
	for range cap(looked) {
		go func() {
			var err error
			for {
				select {
				case <-stop:
					looked <- err
					return
				default:
				}
				_, _, e := FindOwner(dir)
				err = errors.Join(err, e)
			}
		}()
	}
	for i := range 2000 {
		o, err := AcquireFolder(dir, "apply", time.Now())
		if err != nil {
			t.Errorf("after %d times: %v", i, err)
			break
		}
		if _, owned, err := FindOwner(dir); err != nil || !owned {
			t.Errorf("the owner is not found: %v", err)
		}
		if err := o.Release(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	for range cap(looked) {
		if err := <-looked; err != nil {
			t.Error(err)
		}
	}
}
