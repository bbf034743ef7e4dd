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

// TestEventTail: each event is given once, whichever process wrote it, through torn lines, further
// segments and one that was removed.
func TestEventTail(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "events")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(segment int, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("events-%08d.jsonl", segment)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	line := func(text string) string { return `{"type":"note","text":"` + text + `"}` + "\n" }
	write(1, line("before"))
	tail, err := OpenEventTail(folder)
	if err != nil {
		t.Fatal(err)
	}
	read := func(want ...string) {
		t.Helper()
		var got []string
		if err := tail.Read(func(e event.Event) { got = append(got, e.Text) }); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, want %q, %v", got, want, err)
		}
	}
	read()
	write(1, line("a")+`{"type":"note",`)
	read("a")
	write(1, `"text":"torn"}`+"\n"+"no event\n"+`{"text":"`+strings.Repeat("x", maxLine)+"\"}\n"+line("b"))
	read("torn", "b")
	write(1, line("c"))
	write(2, line("d"))
	write(3, line("e"))
	read("c", "d", "e")
	for i := 1; i <= 3; i++ {
		if err := os.Remove(filepath.Join(dir, fmt.Sprintf("events-%08d.jsonl", i))); err != nil {
			t.Fatal(err)
		}
	}
	read()
	write(4, line("f"))
	read("f")
	none, err := OpenEventTail(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tail = none
	read()
}
