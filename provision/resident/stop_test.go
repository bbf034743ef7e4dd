// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
	"github.com/ironrail/ironrail/provision/netboot/evidence"
)

// alone is a Resident of the smallest site, whose files cannot be read while *broken.
func alone(t *testing.T) (r *Resident, broken *bool) {
	t.Helper()
	dir := t.TempDir()
	inv, diags, _ := provision.Load("../../cmd/ironrail/testdata", inventory.Options{Now: time.Now()})
	if inv == nil || !inventory.Complete(diags) {
		t.Fatal(diags)
	}
	store, err := state.Open(filepath.Join(dir, "owned.db"))
	if err != nil {
		t.Fatal(err)
	}
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	broken = new(bool)
	load := func(bool) (*provision.Site, *inventory.Sources, error) {
		if *broken {
			return nil, inv.Sources, errors.New("site.hcl:1: something is missing")
		}
		site, err := provision.Open(inv, provision.Options{State: dir})
		return site, inv.Sources, err
	}
	r, err = Open(t.Context(), Config{Store: store, Fence: fence, Owner: control.Identity{Command: "serve"}, Bus: event.NewBus(100), Boot: BootNever,
		Load: load})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return r, broken
}

// TestFilesBreakInRun: when a run ends while somebody edits the site's files, what was in use
// before goes on answering, and says so; files that are right again are taken.
func TestFilesBreakInRun(t *testing.T) {
	r, broken := alone(t)
	r.turn.Lock()
	if err := r.closeIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	*broken = true
	r.settle(t.Context())
	r.turn.Unlock()
	s, err := r.Status(t.Context())
	if err != nil || !strings.Contains(strings.Join(s.Serves, "\n"), "are not in use yet: site.hcl:1: something is missing") {
		t.Errorf("status after the run: %q, %v", s.Serves, err)
	}
	*broken = false
	r.mu.Lock()
	r.files = nil
	r.mu.Unlock()
	r.refresh(t.Context())
	if s, err = r.Status(t.Context()); err != nil || strings.Contains(strings.Join(s.Serves, "\n"), "not in use") {
		t.Errorf("status after the files were fixed: %q, %v", s.Serves, err)
	}
}

// TestFunctionFiles: a file that a function reads is watched, also where the site cannot be loaded without it.
func TestFunctionFiles(t *testing.T) {
	r, _ := alone(t)
	dir, folder := t.TempDir(), t.TempDir()
	site, err := os.ReadFile("../../cmd/ironrail/testdata/site.hcl")
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("site.hcl", string(site)+"\nlocals { motto = trimspace(file(\"motto.txt\")) }\n")
	loads := 0
	r.cfg.Load = func(bool) (*provision.Site, *inventory.Sources, error) {
		loads++
		inv, diags, _ := provision.Load(dir, inventory.Options{Now: time.Now()})
		if !inventory.Complete(diags) {
			return nil, inv.Sources, errors.New("motto.txt is missing")
		}
		s, err := provision.Open(inv, provision.Options{State: folder})
		return s, inv.Sources, err
	}
	look := func(want int, trouble string) {
		t.Helper()
		r.refresh(t.Context())
		r.refresh(t.Context()) // which finds nothing new
		s, err := r.Status(t.Context())
		if said := strings.Join(s.Serves, "\n"); err != nil || loads != want || strings.Contains(said, "not in use yet") != (trouble != "") || !strings.Contains(said, trouble) {
			t.Errorf("%d loads, want %d; status %q, %v", loads, want, said, err)
		}
	}
	r.mu.Lock()
	r.files = nil
	r.mu.Unlock()
	look(1, "motto.txt is missing")
	put("motto.txt", "first")
	look(2, "")
	put("motto.txt", "second one")
	look(3, "")
}

// TestCounters: what runs and services that have ended had counted is in the sum of those that are up.
func TestCounters(t *testing.T) {
	r, _ := alone(t)
	of := func(n uint64) provision.Counters {
		return provision.Counters{DHCP: dhcp.Stats{Received: n}, BMC: bmc.Counts{Requests: n, Errors: map[errkind.Kind]uint64{errkind.Timeout: n}}, Boot: []evidence.Count{{Proto: boot.TFTP, What: "sent", Events: n}}}
	}
	r.mu.Lock()
	r.counted = of(3)
	r.run = &running{counters: func() provision.Counters { return of(4) }}
	r.mu.Unlock()
	for range 2 {
		if got := r.Counters(); !reflect.DeepEqual(got, of(7)) {
			t.Errorf("got %+v", got)
		}
	}
	r.mu.Lock()
	r.run = &running{} // it is being checked
	r.mu.Unlock()
	if got := r.Counters(); !reflect.DeepEqual(got, of(3)) {
		t.Errorf("without services: %+v", got)
	}
	r.mu.Lock()
	r.run = nil
	r.mu.Unlock()
}

// reviews records what is shown.
type reviews struct{ list []string }

func (v *reviews) Review(p *plan.Plan, expected []string) {
	v.list = append(v.list, p.ID+" "+strings.Join(expected, ","))
}
func (v *reviews) ReviewApproved() { v.list = append(v.list, "approved") }
func (v *reviews) ReviewOver()     { v.list = append(v.list, "over") }

// TestReviews: what is shown is the sealed plan of who has the state, with the digest that was said,
// until its run has begun, did not begin, or who asked is gone.
func TestReviews(t *testing.T) {
	r, _ := alone(t)
	shown := &reviews{}
	r.cfg.Reviews = shown
	loan, end, err := r.Borrow(t.Context(), control.Borrower{Identity: control.Identity{Command: "apply"}})
	if err != nil {
		t.Fatal(err)
	}
	key := r.site.Keys.Plan
	var saved bytes.Buffer
	if err := plan.Save(&saved, &plan.Plan{ID: "p1"}, key); err != nil {
		t.Fatal(err)
	}
	p, _, err := plan.Open(&saved, key)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	show := func(loan, sum string, k plan.Key) error {
		t.Helper()
		var sealed bytes.Buffer
		if err := plan.Save(&sealed, p, k); err != nil {
			t.Fatal(err)
		}
		return r.Review(t.Context(), loan, control.ReviewRequest{Sum: sum, Expected: []string{"an hour"}}, &sealed)
	}
	for what, err := range map[string]error{"another loan": show("other", sum, key), "another digest": show(loan, "sha256:00", key), "another key": show(loan, sum, plan.Key("not the site's"))} {
		if errkind.Of(err) != errkind.Refused {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := show(loan, sum, key); err != nil || !slices.Equal(shown.list, []string{"p1 an hour"}) {
		t.Errorf("shown: %q, %v", shown.list, err)
	}
	shown.list = nil
	if _, err := r.Begin(t.Context(), loan, control.RunRequest{}, strings.NewReader("{")); err == nil || !slices.Equal(shown.list, []string{"approved", "over"}) {
		t.Errorf("a run that does not begin: %q, %v", shown.list, err)
	}
	shown.list = nil
	if end(); !slices.Equal(shown.list, []string{"over"}) {
		t.Errorf("once the command is gone: %q", shown.list)
	}
	if err := show(loan, sum, key); errkind.Of(err) != errkind.Refused || len(shown.list) != 1 {
		t.Errorf("a plan of who is gone: %q, %v", shown.list, err)
	}
}

// beginning has a command ask for a run, and hands back the rest of its plan, which is not sent yet.
func beginning(t *testing.T, r *Resident) (rest *io.PipeWriter, end func(), begun <-chan error) {
	t.Helper()
	loan, end, err := r.Borrow(t.Context(), control.Borrower{Identity: control.Identity{Command: "apply"}})
	if err != nil {
		t.Fatal(err)
	}
	sealed, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := r.Begin(t.Context(), loan, control.RunRequest{}, sealed)
		ended <- err
	}()
	if _, err := io.WriteString(w, "{"); err != nil { // it is being read
		t.Fatal(err)
	}
	return w, end, ended
}

// TestStopBeforeBegin: a run is stopped, drained and forgotten while its plan is still checked:
// by an operator, by the end of the owner, and by the end of the command that asked for it.
func TestStopBeforeBegin(t *testing.T) {
	r, _ := alone(t)
	w, end, begun := beginning(t, r)
	if err := errors.Join(r.Drain(t.Context()), r.Stop(t.Context())); err != nil {
		t.Error(err)
	}
	_ = w.Close()
	if err := <-begun; errkind.Of(err) != errkind.Interrupted || !strings.Contains(err.Error(), "stopped by the operator") {
		t.Errorf("a run that was stopped: %v", err)
	}
	end()
	w, end, begun = beginning(t, r)
	end() // Ctrl-C
	_ = w.Close()
	if err := <-begun; err == nil || !strings.Contains(err.Error(), "does not have the state any more") {
		t.Errorf("a run of a command that is gone: %v", err)
	}
	w, end, begun = beginning(t, r)
	defer end()
	closed := make(chan error, 1)
	go func() { closed <- r.Close(context.Background()) }()
	select {
	case <-closed:
		t.Error("closed while a plan is read")
	case <-time.After(50 * time.Millisecond):
	}
	_ = w.Close()
	if err := <-begun; errkind.Of(err) != errkind.Interrupted {
		t.Errorf("a run while the owner ends: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestLookAfterRun: what the last look has shown is looked at again soon after a run, and only then.
func TestLookAfterRun(t *testing.T) {
	now := time.Now()
	shown := map[string][]string{"n1": {"drifted: link"}}
	for _, c := range []struct {
		l    look
		want time.Time
	}{
		{look{due: now.Add(time.Hour), notes: shown}, now.Add(driftFirst)},
		{look{due: now.Add(time.Second), notes: shown}, now.Add(time.Second)},
		{look{due: now.Add(time.Hour)}, now.Add(time.Hour)},
		{look{notes: shown}, time.Time{}}, // none is taken
	} {
		w := watch{drift: c.l, chassis: c.l}
		if w.lookAfterRun(now); !w.drift.due.Equal(c.want) || !w.chassis.due.Equal(c.want) {
			t.Errorf("%d notes: due %v and %v, want %v", len(c.l.notes), w.drift.due, w.chassis.due, c.want)
		}
	}
}
