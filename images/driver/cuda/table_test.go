// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"
	"time"
)

// The rows name each other; a wrong number would send somebody to a branch that
// is ended too.
func TestBranches(t *testing.T) {
	t.Parallel()
	for i, b := range branches {
		if next, ok := branchOf(b.next); b.next != 0 && (!ok || !Dated.Before(next.end)) {
			t.Errorf("R%d goes to R%d, which is not there or had ended", b.number, b.next)
		}
		if i > 0 && branches[i-1].number >= b.number {
			t.Errorf("R%d is not in order", b.number)
		}
		if least, ok := minimums[b.Major()]; !ok || b.number < least {
			t.Errorf("R%d was made for CUDA %d, which needs R%d", b.number, b.Major(), least)
		}
	}
}

// When every branch of the tables has ended, the warning names none of them.
func TestSuccessor(t *testing.T) {
	t.Parallel()
	for year, want := range map[int]string{2026: "Go to R580, which is supported until June 2028.", 2030: "Take a branch that is supported; the tables, of 2026-11-21, know none."} {
		c := check{branch: branches[0]}
		if got := c.successor(time.Date(year, 11, 21, 0, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("in %d: %q, want %q", year, got, want)
		}
	}
}

// Each generation has a module, and a toolkit that its first driver can have.
func TestArchitectures(t *testing.T) {
	t.Parallel()
	for model, a := range models {
		if !a.open && !a.closed {
			t.Errorf("%s has no module", model)
		}
		if a.last > 0 && a.first > a.last {
			t.Errorf("%s: R%d to R%d", model, a.first, a.last)
		}
	}
	for model := range trays {
		if _, ok := models[model]; !ok {
			t.Errorf("tray %s has no generation", model)
		}
	}
}

func TestArchitectureOf(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"H100 SXM5 80GB": "Hopper", "NVIDIA GB200 NVL72": "Blackwell", "b300-sxm6": "Blackwell Ultra", "V100-SXM2": "Volta", "GTX 1080": "", "A1000": "",
	} {
		if a, _ := architectureOf(model); a.name != want {
			t.Errorf("%s is %q, want %q", model, a.name, want)
		}
	}
}
