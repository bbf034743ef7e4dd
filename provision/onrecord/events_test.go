// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/event"
)

// TestNewestEvents: backward is forward backward, over segments, with lines that are torn.
func TestNewestEvents(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "events"), 0o700); err != nil {
		t.Fatal(err)
	}
	line := func(n int) string { return fmt.Sprintf(`{"seq":%d,"type":"note","text":"event %d"}`, n, n) }
	for i, text := range []string{line(1) + "\n" + line(2) + "\n", "", line(3) + "\n{\"seq\":4,\"ty", "\n\n" + line(5) + "\n" + line(6) + "\n" + line(7)[:10]} {
		if err := os.WriteFile(filepath.Join(folder, "events", fmt.Sprintf("events-%08d.jsonl", i+1)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var forward, back []string
	if err := KeptEvents(folder, func(e event.Event) error { forward = append(forward, e.Text); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := NewestEvents(folder, func(e event.Event) bool { back = append(back, e.Text); return true }); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(back)
	if !slices.Equal(forward, back) || strings.Join(back, ",") != "event 1,event 2,event 3,event 5,event 6" {
		t.Errorf("forward %q, backward %q", forward, back)
	}
	n := 0
	if err := NewestEvents(folder, func(event.Event) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("%d events were given after the last that is wanted: %v", n, err)
	}
	if err := NewestEvents(t.TempDir(), func(event.Event) bool { return true }); err != nil {
		t.Errorf("without events: %v", err)
	}
}
