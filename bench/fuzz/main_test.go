// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

// TestTargets: every target is found, those that are named slow exist, and each is of one
// share.
func TestTargets(t *testing.T) {
	t.Parallel()
	all, err := listTargets("../..")
	if err != nil || len(all) < 100 {
		t.Fatalf("%d targets, %v", len(all), err)
	}
	var names []string
	shares := map[int]int{}
	for _, x := range all {
		x.dir = x.dir[len("../../"):]
		names = append(names, x.String())
		shares[shareOf(x, 10)]++
	}
	for _, s := range slow {
		if !slices.Contains(names, s) {
			t.Errorf("%s is named slow and does not exist", s)
		}
	}
	for part := 1; part <= 10; part++ {
		if shares[part] == 0 {
			t.Errorf("share %d/10 has no target: %v", part, shares)
		}
	}
}

func TestParseShare(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]int{"1/1": {1, 1}, "3/10": {3, 10}, "0/10": {}, "11/10": {}, "x": {}, "1/0": {}} {
		part, of, err := parseShare(in)
		if (err == nil) != (want != [2]int{}) || err == nil && [2]int{part, of} != want {
			t.Errorf("%q: %d/%d, %v", in, part, of, err)
		}
	}
}
