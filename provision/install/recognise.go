// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// A state that was put back from a copy knows nothing of what was done since. A node
// that has power may then stand in a ramdisk of this controller, boot one, or run and have
// been accepted since. Which of these is so the node itself shows: by the token of its
// ramdisk, which only this controller's key makes; by a system that answers; by booting from
// the network again and again, since nothing on its disks starts.

const (
	recognisePause = 2 * time.Second // between two looks at a node
	// comesBack is how long the agent of an attempt that was not open may take to call again: it
	// doubles its pauses up to two minutes, since a refused token is accepted again by
	// this alone.
	comesBack = 3 * time.Minute
)

// recognise finds out what a node does of which refusal says that this state does not let it be
// interrupted. It returns the attempt of the node's own ramdisk, whose agent has called,
// or the zero Attempt for a node on which nothing runs: a new one may interrupt it. Else the
// error is of type stage.BlockedError: the node is left as it is.
func (s *Stage) recognise(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, refusal error) (Attempt, error) {
	if !s.w.Restored {
		return Attempt{}, refusal
	}
	began := run.Clock().Now()
	until := began.Add(min(silenceLimit(n, st), st.Deadline.Limit/2)) // the rest is for the boot that may follow
	run.Emit(event.Event{Type: event.StepProgress, Until: until,
		Text: "has power, and the state, which was put back from a copy, does not say why: waits for its ramdisk, or for its system"})
	for {
		if id := s.w.Hub.Asking(n.Name, began); id != "" {
			return s.reclaim(ctx, run, n, id)
		}
		if shown := s.w.Runs(ctx, n); shown != "" {
			return Attempt{}, &stage.BlockedError{Err: errkind.New(errkind.Refused, "%s runs, and the state, which was put back from a copy, does not know it: %s", n.Name, shown).
				Do(fmt.Sprintf("`ironrail adopt %s` records it as it runs.", n.Name))}
		}
		switch {
		case bootsInVain(s.w.Evidence(n.Name, began)):
			run.Emit(event.Event{Type: event.Note, Text: "it was sent to its disk, and asked again to boot from the network: nothing on it starts"})
			return Attempt{}, nil
		case run.Clock().Now().After(until):
			return Attempt{}, &stage.BlockedError{Err: refusal}
		}
		if err := run.Clock().Sleep(ctx, recognisePause); err != nil {
			return Attempt{}, err
		}
	}
}

// betweenBoots is how long the firmware takes at least from one network boot to the next:
// requests that are closer are of the same.
const betweenBoots = 30 * time.Second

// bootsInVain reports whether a node without an attempt was sent to its disk more than once.
func bootsInVain(seen []BootEvent) bool {
	sent := slices.DeleteFunc(seen, func(e BootEvent) bool { return e.Proto != boot.IPXE || e.Refused })
	return len(sent) > 1 && sent[len(sent)-1].Time.Sub(sent[0].Time) > betweenBoots
}

// reclaim makes an attempt the node's current one again, which the state has forgotten, and
// waits for its agent. One that does not call again leaves nothing behind that runs.
func (s *Stage) reclaim(ctx context.Context, run stage.Run, n *inventory.Node, id string) (Attempt, error) {
	now := run.Clock().Now()
	at := Attempt{ID: id, Node: n.Name, Phase: Open, Power: PowerOn, Opened: now.UTC(), Expires: now.Add(attemptLife).UTC()}
	if err := learnFact(ctx, run, AttemptFact, n, at); err != nil {
		return at, err
	}
	s.w.Boots.Set(at)
	run.Emit(event.Event{Type: event.Note, Text: "its ramdisk has the token of boot attempt " + id + ", which this controller gave: the installation continues with it"})
	wait, cancel := run.Clock().WithTimeout(ctx, comesBack)
	defer cancel()
	if _, err := s.w.Hub.Wait(wait, at.grant()); err == nil || ctx.Err() != nil {
		return at, context.Cause(ctx)
	}
	return Attempt{}, nil
}
