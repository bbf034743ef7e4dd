// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"strings"
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	at := func(id, text string, second int) LogEntry {
		return LogEntry{ID: id, Message: text, Created: time.Unix(int64(second), 0)}
	}
	log := []LogEntry{at("1", "on", 10), at("2", "fan", 20), at("3", "fan", 20), at("4", "off", 30)}
	for _, c := range []struct {
		name string
		mark LogMark
		want string
	}{
		{"from the beginning", LogMark{}, "1 2 3 4"},
		{"in the middle", markOf(log[0]), "2 3 4"},
		{"the first of two that are alike", markOf(log[1]), "3 4"},
		{"the second of two that are alike", markOf(log[2]), "4"},
		{"at the end", markOf(log[3]), ""},
		{"numbered anew", LogMark{ID: "9", Message: "on", Created: time.Unix(10, 0)}, "2 3 4"},
		{"emptied since", LogMark{ID: "1", Message: "gone", Created: time.Unix(1, 0)}, "1 2 3 4"},
	} {
		var got []string
		for _, e := range after(log, c.mark) {
			got = append(got, e.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSupplyOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		states    []uint8
		bad, dark bool
	}{
		{"present", []uint8{0}, false, false}, {"failed", []uint8{0, 1}, true, false}, {"about to fail", []uint8{0, 2}, true, false},
		{"no input", []uint8{0, 3}, false, true}, {"nothing is told", nil, false, false},
	} {
		if p := supplyOf("PSU1 Status ", c.states, nil); p.Failed != c.bad || p.NoInput != c.dark || p.Name != "PSU1 Status" {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}
