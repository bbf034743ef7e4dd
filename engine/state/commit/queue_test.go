// SPDX-License-Identifier: Apache-2.0

package commit_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/engine/state/commit"
)

// TestGroups: every item is written once, groups are cut where Fits says, and an item that
// fits nowhere is a group of its own.
func TestGroups(t *testing.T) {
	t.Parallel()
	const most = 10
	sum := func(g []int) (n int) {
		for _, x := range g {
			n += x
		}
		return n
	}
	q := commit.Queue[int]{Fits: func(g []int, next int) bool { return sum(g)+next <= most }}
	var mu sync.Mutex // guards written
	var written []int
	var wg sync.WaitGroup
	var want []int
	for i := range 200 {
		x := 1 + i%13
		want = append(want, x)
		wg.Go(func() {
			q.Join(x, func(g []int) {
				mu.Lock()
				defer mu.Unlock()
				if len(g) != 1 && sum(g) > most {
					t.Errorf("group %v has %d", g, sum(g))
				}
				written = append(written, g...)
			})
		})
	}
	wg.Wait()
	slices.Sort(written)
	slices.Sort(want)
	if !slices.Equal(written, want) {
		t.Errorf("written %v", written)
	}
}
