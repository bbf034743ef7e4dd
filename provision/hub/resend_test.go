// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
)

// TestLostPoll: a task that went out on a connection that was dead is sent again,
// and one that was sent just before is not.
func TestLostPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Grants: grants{}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		h.mu.Lock()
		h.of(n1).greeted, h.of(n1).seen = true, time.Now()
		h.mu.Unlock()
		go func() {
			defer close(done)
			_, _ = h.Do(ctx, n1, wire.Task{Key: "k", Kind: wire.Inspect}, nil)
		}()
		synctest.Wait()
		take := func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			task, _ := h.take(n1)
			return task != nil
		}
		if !take() || take() {
			t.Fatal("a task is sent once at first")
		}
		time.Sleep(again + time.Second)
		if !take() || take() {
			t.Error("a task without a result is sent once more after a while")
		}
		cancel()
		<-done
	})
}
