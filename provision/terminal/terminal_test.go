// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/onrecord"
)

// owner answers one console after the other.
type owner struct {
	control.Backend
	answer func(control.ConsoleRequest, control.Watcher) error
}

func (o *owner) Console(_ context.Context, q control.ConsoleRequest, w control.Watcher) error {
	return o.answer(q, w)
}

// TestSince: since when somebody has typed without an owner is said to each owner until one continues with
// the console, so that the record of it gets an end.
func TestSince(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	own, err := control.AcquireToStay(folder, "serve", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Release() }()
	ln, err := own.Listen()
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{}
	serving, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- control.Serve(serving, ln, o, "test") }()
	began := time.Now().UTC().Round(time.Second)
	q := control.ConsoleRequest{Node: "n1", Type: true, Since: began}
	c := Config{Marker: onrecord.Marker{Place: onrecord.Place{Folder: folder}}}
	for _, x := range []struct {
		what       string
		open       bool
		said, kept time.Time
	}{{"checks a run", false, began, began}, {"continues", true, began, time.Time{}}, {"again", true, time.Time{}, time.Time{}}} {
		o.answer = func(q control.ConsoleRequest, w control.Watcher) error {
			if !q.Since.Equal(x.said) {
				t.Errorf("%s: since %v was said, want %v", x.what, q.Since, x.said)
			}
			if x.open {
				w.Up()
			}
			return errkind.New(errkind.Unreachable, "ended")
		}
		if _, err := c.once(t.Context(), &q, control.Watcher{To: t.Output(), Keys: make(chan string), Up: func() {}}); !passes(err) || !q.Since.Equal(x.kept) {
			t.Errorf("%s: since %v is kept, want %v; %v", x.what, q.Since, x.kept, err)
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
