// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
)

// TestLine: who waits is served in order, one that waits for something else is not kept, and one that
// leaves keeps nobody.
func TestLine(t *testing.T) {
	t.Parallel()
	l := NewLimits(map[string]int{"inrush/": 2})
	borrow := func(names ...string) (granted func() bool, end func()) {
		t.Helper()
		var uses []plan.Use
		for _, n := range names {
			uses = append(uses, plan.Use{Resource: "inrush/room/" + n, Units: 2})
		}
		wait, end, err := l.Borrow(uses)
		if err != nil {
			t.Fatal(err)
		}
		return func() bool { return wait(t.Context()) == nil }, end
	}
	_, endA := borrow("a")
	_, endAB := borrow("a", "b") // waits for a
	inB, endB := borrow("b")     // behind it
	inC, endC := borrow("c")
	if !inC() || len(l.line.waiting) != 2 {
		t.Errorf("%d in line", len(l.line.waiting))
	}
	endAB() // it leaves the line
	if !inB() || len(l.line.waiting) != 0 {
		t.Errorf("%d in line after one has left", len(l.line.waiting))
	}
	inA2, endA2 := borrow("a")
	endA()
	if !inA2() {
		t.Error("what was given back is not lent")
	}
	endA2()
	endB()
	endC()
	for name, n := range l.line.used {
		if n != 0 || l.line.wanted[name] != 0 {
			t.Errorf("%s: %d in use, %d wanted at the end", name, n, l.line.wanted[name])
		}
	}
}
