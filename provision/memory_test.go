// SPDX-License-Identifier: Apache-2.0

package provision_test

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/ironrail/ironrail/provision"
)

// TestLimitMemory: the limit grows with the site, a lower one stays, and what was
// before is put back. It is not parallel: the limit is the process's.
func TestLimitMemory(t *testing.T) {
	const unlimited = 1 << 50
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(unlimited))
	for _, c := range []struct {
		name      string
		was, want int64
		nodes     int
	}{
		{"a small site", unlimited, 640 << 20, 3},
		{"a large site", unlimited, 100_000 * 48 << 10, 100_000},
		{"a lower limit of the environment", 100 << 20, 100 << 20, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			debug.SetMemoryLimit(c.was)
			percent := debug.SetGCPercent(100)
			defer debug.SetGCPercent(percent)
			restore := provision.LimitMemory(c.nodes)
			if got := debug.SetMemoryLimit(-1); got != c.want {
				t.Errorf("limit %d, want %d", got, c.want)
			}
			restore()
			if got := debug.SetMemoryLimit(-1); got != c.was {
				t.Errorf("limit %d afterwards, want %d", got, c.was)
			}
			if got := debug.SetGCPercent(100); got != 100 {
				t.Errorf("percent %d afterwards, want 100", got)
			}
		})
	}
}

// TestLimitMemoryTogether: those who load and plan at the same time end in any order, and
// what was before them is put back by the last.
func TestLimitMemoryTogether(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 50))
	load := provision.CollectLess(t.TempDir())
	plan := provision.LimitMemory(3)
	if got := debug.SetMemoryLimit(-1); got != 640<<20 {
		t.Errorf("limit %d beside a load", got)
	}
	load()
	load() // once is enough
	if got := debug.SetGCPercent(400); got != 400 {
		t.Errorf("percent %d while one plans still", got)
	}
	plan()
	if percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != 100 || limit != 1<<50 {
		t.Errorf("percent %d, limit %d afterwards", percent, limit)
	}
}

// TestCollectLess: where much is written out, its parser's garbage does not pile up.
func TestCollectLess(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ bytes, percent int }{{1 << 10, 400}, {2 << 20, 125}} {
		if err := os.WriteFile(filepath.Join(dir, "site.hcl"), make([]byte, c.bytes), 0o644); err != nil {
			t.Fatal(err)
		}
		was := debug.SetGCPercent(100)
		restore := provision.CollectLess(dir)
		if got := debug.SetGCPercent(100); got != c.percent {
			t.Errorf("percent %d for %d bytes, want %d", got, c.bytes, c.percent)
		}
		restore()
		debug.SetGCPercent(was)
	}
}
