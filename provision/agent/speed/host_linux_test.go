// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestHost: figures of this system are figures, and reading does not change what is read.
func TestHost(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func() ([]float64, error)
	}{
		{"triad", func() ([]float64, error) { return Host{}.Triad(t.Context(), []int{0}, 1<<20, 20*time.Millisecond) }},
		{"rounds", func() ([]float64, error) { return Host{}.Rounds(t.Context(), []int{0}, 20*time.Millisecond) }},
	} {
		if rates, err := c.run(); err != nil || len(rates) != 1 || rates[0] < 1e6 {
			t.Errorf("%s: %v, %v", c.name, rates, err)
		}
	}
	if _, err := (Host{}).Rounds(t.Context(), []int{4000}, time.Millisecond); err == nil {
		t.Error("a CPU that is not there works")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Host{}).Rounds(gone, []int{0}, time.Hour); err == nil {
		t.Error("nobody wants it, and it goes on")
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(name, make([]byte, 5<<20+7), 0o400); err != nil {
		t.Fatal(err)
	}
	n, took, failed, err := Host{}.Read(t.Context(), name, 5<<20+7, 4<<20, time.Minute)
	if err != nil && !failed {
		t.Skip("no direct I/O here: ", err)
	}
	if n != 4<<20 || took <= 0 || err != nil {
		t.Errorf("%d bytes in %s: %v", n, took, err)
	}
	if n, _, _, err := (Host{}).Read(t.Context(), name, 5<<20+7, 1<<30, time.Minute); n != 5<<20 || err != nil {
		t.Errorf("to its end: %d bytes, %v", n, err)
	}
	if _, _, _, err := (Host{}).Read(t.Context(), name+"x", 1<<30, 1<<30, time.Minute); err == nil {
		t.Error("a disk that is not there was read")
	}
	if _, _, _, err := (Host{}).Read(t.Context(), name, 100, 1<<30, time.Minute); err == nil {
		t.Error("a hundred bytes were timed")
	}
}

// TestTriad: what is timed is what is said.
func TestTriad(t *testing.T) {
	t.Parallel()
	a := make([]float64, 3)
	triad(a, []float64{1, 2, 3}, []float64{10, 20, 30})
	if a[0] != 31 || a[2] != 93 {
		t.Error(a)
	}
	if turn(1, 1) == turn(1, 2) || turn(turn(1, 3), 4) != turn(1, 7) {
		t.Error("a round does nothing")
	}
}

// TestLock: two that measure do so one after the other.
func TestLock(t *testing.T) {
	release, err := Host{}.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := (Host{}).Lock(soon); err == nil {
		t.Error("two hold it")
	}
	release()
	if release, err = (Host{}).Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	release()
}
