// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"path/filepath"
	"testing"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestFindingsOfTheSite: what the last run found about the site, of no step, is read
// from the journal; a node that one of them is about has it in its story.
func TestFindingsOfTheSite(t *testing.T) {
	t.Parallel()
	st, err := state.Open(filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	fence, err := st.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	network := subject.ID{Kind: subject.Site, Name: "network.boot"}
	found := func(of subject.ID, step, cause string, about ...string) state.Record {
		f := stage.Finding{Suspects: []stage.Suspect{{Subject: of}}, Cause: cause, Step: step}
		for _, n := range about {
			f.About = append(f.About, subject.OfNode(n))
		}
		return state.Record{Kind: state.FindingMade, Subject: of, Step: step}.With(f)
	}
	records := []state.Record{
		{Kind: state.RunStarted, Run: "r1"}, found(network, "", "of the run before", "n1"),
		{Kind: state.RunStarted, Run: "r2"}, found(network, "", "boot files of n1", "n1", "n2"), found(network, "", "another DHCP server"),
		found(network, "all/fabric.sweep", "of a step", "n1"), found(subject.OfNode("n1"), "", "of a node"),
	}
	n, err := state.PutOf(state.NodeKey("n1"), state.Node{Name: "n1"})
	if err == nil {
		_, err = st.Append(t.Context(), fence, state.Batch{Records: records, Puts: []state.Put{n}})
	}
	if err != nil {
		t.Fatal(err)
	}
	left, err := control.ReadLastRun(t.Context(), st)
	if err != nil || len(left.Findings) != 2 || left.Findings[0].Cause != "boot files of n1" || left.Findings[1].Cause != "another DHCP server" {
		t.Errorf("got %+v, %v", left.Findings, err)
	}
	w, err := control.ReadWhy(t.Context(), st, "n1")
	if err != nil || len(w.Near) != 1 || w.Near[0].Cause != "boot files of n1" {
		t.Errorf("n1: %+v, %v", w.Near, err)
	}
}
