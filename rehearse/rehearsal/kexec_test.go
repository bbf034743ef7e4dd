// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// withKexec is the site of eight nodes whose ramdisk starts the installed system.
func withKexec(t *testing.T) *inventory.Inventory {
	inv := load(t, demo, nil)
	for _, h := range inv.Hardware {
		h.Kexec = true
	}
	return inv
}

// TestKexec brings a site up whose nodes are started by their ramdisk. One does not come up by it
// and is reset, so that its firmware starts it; the kernel of another loads none, and its firmware has all
// the time that it needs; before a node is tested its firmware has started
// it in any case, and nobody is blamed.
func TestKexec(t *testing.T) {
	t.Parallel()
	const stuck, refusing = "r01-u09", "r02-u25"
	rack := func(_ context.Context, w *virtual.World) error {
		return errors.Join(w.HangAfterKexec(stuck), w.RefuseKexec(refusing))
	}
	said := map[string]map[string]bool{}
	sum, err := rehearsal.Run(context.Background(), withKexec(t), rehearsal.Options{Seed: 5, OnRack: rack,
		OnEvent: func(e event.Event) {
			for _, text := range []string{"kexec: /vmlinuz is loaded", "it is reset, and the firmware starts it", "which did not come up by kexec", "by its firmware", "required key not available"} {
				if strings.Contains(e.Text, text) {
					if said[text] == nil {
						said[text] = map[string]bool{}
					}
					said[text][e.Node] = true
				}
			}
		},
		Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
			l := rehearsaltest.Of(r)
			if p, err := l.Plan(ctx, provision.PlanOptions{Refresh: true}); err != nil || !p.Empty() {
				t.Errorf("a second plan: %v, %v", ids(p), err)
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Outcome != "done" || len(sum.Findings) > 0 {
		t.Errorf("bring-up: %s, %+v", sum.Outcome, sum.Findings)
	}
	for text, want := range map[string]int{"kexec: /vmlinuz is loaded": 7, "by its firmware": 6} {
		if len(said[text]) != want || said[text][refusing] {
			t.Errorf("%q was said of %v, want %d nodes without %s", text, said[text], want, refusing)
		}
	}
	for text, want := range map[string]string{"it is reset, and the firmware starts it": stuck, "which did not come up by kexec": stuck, "required key not available": refusing} {
		if len(said[text]) != 1 || !said[text][want] {
			t.Errorf("%q was said of %v, want %s", text, said[text], want)
		}
	}
}
