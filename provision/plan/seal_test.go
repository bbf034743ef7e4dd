package plan

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision/subject"
)

// TestSealedPlans: a saved plan is whole when it is read, however it is indented, and
// is not when anything of it was changed.
func TestSealedPlans(t *testing.T) {
	t.Parallel()
	p := &Plan{Format: Format, ID: "p1", Site: "s", Created: time.Date(2026, 11, 21, 3, 4, 5, 6, time.UTC),
		Steps: []Step{{ID: "n1/install.write", Subject: subject.OfNode("n1"), Title: "write <image> & \"os\"", May: Effects(Erase),
			Params: map[string]Value{"a": Literal(map[string]any{"x": []int{1}})}, Needs: []Need{{Step: "n1/handover.drain", On: Success}}}},
		Versions: map[subject.ID]uint64{subject.OfNode("n1"): 3}, Erase: Erasure{Nodes: []string{"n1"}, Budget: 4}}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	saved, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for old, new := range map[string]string{
		"":                     "",
		`"budget": 4`:          `"budget": 9`,
		`"step": "n1/handover`: `"step": "n2/handover`,
		`"node/n1": 3`:         `"node/n1": 4`,
		p.Sum:                  "",
	} {
		b := saved
		if old != "" {
			if b = bytes.Replace(saved, []byte(old), []byte(new), 1); bytes.Equal(b, saved) {
				t.Fatalf("%s does not hold %q", saved, old)
			}
		}
		var back Plan
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if back.Whole() != (old == "") {
			t.Errorf("%q for %q: whole %v", new, old, back.Whole())
		}
	}
}
