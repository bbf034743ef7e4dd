// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/remote"
	"golang.org/x/crypto/ssh"
)

// TestPeerLookOverSSH: a look at a switch that the state does not know reads it from a real
// sshd and changes nothing; one whose key is not the pinned one is asked nothing.
func TestPeerLookOverSSH(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	site, err := Open(b.way.Inv, Options{State: t.TempDir(), Secrets: b.way.Secrets})
	if err != nil {
		t.Fatal(err)
	}
	st := b.step()
	st.Stage = fabric.StageName
	store := state.NewMemory()
	look := func() looks.Look {
		t.Helper()
		shown, err := site.observer().Look(t.Context(), store, []plan.Step{st}, observe.Options{Refresh: true, Now: planned})
		if err != nil || len(shown) != 1 {
			t.Fatal(shown, err)
		}
		return shown[0]
	}
	l := look()
	if want := len(b.want.Compare(b.factory())); l.State != stage.Differs || len(l.Operations) != want || len(l.Facts) != 1 {
		t.Errorf("%s (%s): %d operations, want %d; keys %v", l.State, l.Evidence, len(l.Operations), want, l.Facts)
	}
	before := string(b.get(t, "log"))
	if before != "sonic-cfggen -d --print-data\n" {
		t.Errorf("commands:\n%s", before)
	}
	other, _, err := remote.GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	f, err := switchos.HostKeyFact.New(switchos.Of(b.sw), string(ssh.MarshalAuthorizedKey(other.PublicKey())), "")
	if err != nil {
		t.Fatal(err)
	}
	fence, err := store.Claim(t.Context(), "test")
	if err == nil {
		err = looks.Record(t.Context(), store, fence, []looks.Look{{Step: st.ID, At: planned, State: stage.Differs, Facts: []fact.Fact{f}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if l = look(); l.State != stage.Unknown || !strings.Contains(l.Evidence, "host key changed: the switch shows") || len(l.Facts) > 0 || string(b.get(t, "log")) != before {
		t.Errorf("%+v\n%s", l, b.get(t, "log"))
	}
}
