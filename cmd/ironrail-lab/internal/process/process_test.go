// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const tail = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	tests := []struct {
		name, in string
		start    uint64
		ok       bool
	}{
		{"plain", "7 (qemu)" + tail, 4711, true},
		{"parentheses and spaces in the command", "7 (a) b) (c" + ")" + tail, 4711, true},
		{"empty", "", 0, false},
		{"short", "7 (x) S 1", 0, false},
		{"no number", "7 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			start, _, err := parseStat(tt.in)
			if (err == nil) != tt.ok || start != tt.start {
				t.Errorf("start %d, error %v; want %d, ok %v", start, err, tt.start, tt.ok)
			}
		})
	}
}

func TestEndHitsOnlyTheNamedProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skipf("no sleep program: %v", err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	id, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	other := ID{PID: id.PID, Start: id.Start + 1} // the same pid, used again
	if other.Alive() {
		t.Error("a process with another start time counts as alive")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := other.End(ctx, time.Second); err != nil || !id.Alive() {
		t.Fatalf("ending a process of the past: error %v, alive %v", err, id.Alive())
	}
	if err := id.End(ctx, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	<-exited
	if id.Alive() {
		t.Error("still alive")
	}
}

func TestZeroIDIsNothing(t *testing.T) {
	t.Parallel()
	if (ID{}).Alive() {
		t.Error("the zero ID is alive")
	}
	if err := (ID{}).End(t.Context(), time.Second); err != nil {
		t.Error(err)
	}
	if self, err := Of(os.Getpid()); err != nil || !self.Alive() {
		t.Errorf("this process: %v, %v", self, err)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (qemu) S 1 2 3")
	f.Fuzz(func(_ *testing.T, s string) { _, _, _ = parseStat(s) })
}
