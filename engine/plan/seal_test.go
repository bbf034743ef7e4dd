// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/subject"
)

// savedPlan is a plan with what is hard to write: marks, quotes, names in names, fields
// that repeat, a step without a subject.
func savedPlan() *Plan {
	p := &Plan{Format: Format, ID: "p1", Site: "s", Created: time.Date(2026, 11, 21, 3, 4, 5, 6, time.UTC),
		Versions: map[subject.ID]uint64{subject.OfNode("n1"): 3}, Erase: Erasure{Nodes: []string{"n1"}, Budget: 4},
		Request: &Request{Replace: []string{"n1"}, Trust: time.Hour}}
	for _, n := range []string{"n1", "n11", "r1-n1", "n2", "\x01\"\\[{"} {
		p.Steps = append(p.Steps, Step{ID: StepID(n + "/install.write"), Subject: subject.OfNode(n), Title: "write <image> & \"os\" to " + n + " \x01\\", May: Effects(Erase), Erases: "disk of " + n,
			Why: []string{"not done yet: " + n}, Params: map[string]Value{"$": Literal(map[string]any{"x": []int{1}}), n: Literal(n)}, Needs: []Need{{Step: StepID(n + "/handover.drain"), On: Success}}})
	}
	p.Steps = append(p.Steps, Step{ID: "site/check", Subject: subject.ID{Kind: subject.Site, Name: "check"}, Title: "look", Group: &Group{Set: "all", Members: []subject.ID{subject.OfNode("n1")}}})
	return p
}

func written(t *testing.T, p *Plan, k Key) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Save(&b, p, k); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSavedPlans: a plan is read as it was written, and its seal is valid under the
// key that sealed it only.
func TestSavedPlans(t *testing.T) {
	t.Parallel()
	p, key := savedPlan(), Key("0123456789abcdef0123456789abcdef")
	for name, c := range map[string]struct {
		sealed, read Key
		problem      string
	}{
		"the same key":   {key, key, ""},
		"another key":    {key, Key("another"), "it was sealed with the key SHA256:"},
		"no key here":    {key, nil, "and this site has no keys"},
		"never sealed":   {nil, key, "it has no seal"},
		"neither sealed": {nil, nil, "it has no seal"},
	} {
		back, problem, err := Open(bytes.NewReader(written(t, p, c.sealed)), c.read)
		if err != nil || (problem == "") != (c.problem == "") || !strings.Contains(problem, c.problem) {
			t.Errorf("%s: %q, %v; want %q", name, problem, err, c.problem)
			continue
		}
		was, _ := json.Marshal(p)
		is, _ := json.Marshal(back)
		if !bytes.Equal(was, is) {
			t.Errorf("%s:\n%s\nwant\n%s", name, is, was)
		}
	}
	if text := string(written(t, p, key)); strings.Contains(text, "0123456789") {
		t.Error("the key stands in the plan")
	}
}

// TestEditedPlans: whatever byte of a saved plan is changed or left out, it is refused
// or its seal is not valid.
func TestEditedPlans(t *testing.T) {
	t.Parallel()
	key := Key("0123456789abcdef0123456789abcdef")
	saved := written(t, savedPlan(), key)
	for i := range saved {
		for what, b := range map[string][]byte{
			"changed":  bytes.Join([][]byte{saved[:i], {saved[i] ^ 1}, saved[i+1:]}, nil),
			"left out": bytes.Join([][]byte{saved[:i], saved[i+1:]}, nil),
			"cut off":  saved[:i],
		} {
			if what != "changed" && i%3 != 0 {
				continue
			}
			p, problem, err := Open(bytes.NewReader(b), key)
			if err == nil && problem == "" && !(what != "cut off" && sealSpelling(saved, i)) {
				t.Fatalf("byte %d (%q) %s: taken as it was saved: %v", i, saved[i], what, p.ID)
			}
		}
	}
	if _, _, err := Open(bytes.NewReader(append(saved, '\n')), key); err == nil {
		t.Error("something follows the seal, and nothing is said")
	}
}

// sealSpelling reports whether a byte belongs to how the seal itself is spelled, such as
// its last line break, which means nothing.
func sealSpelling(saved []byte, i int) bool {
	return i >= bytes.LastIndex(bytes.TrimSpace(saved), []byte("\n"))
}

// TestOtherFormats: a plan of format 1 is named as such, however it is indented.
func TestOtherFormats(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"{\n  \"format\": 1,\n  \"id\": \"p1\"\n}\n": 1,
		`{"format":1,"steps":[]}`:                    1,
		`{"format":3,"steps":[]}`:                    3,
		`{"id":"p1"}`:                                0,
		"":                                           0,
		"\x7fELF":                                    0,
	} {
		_, _, err := Open(strings.NewReader(text), nil)
		if f, ok := errors.AsType[*FormatError](err); err == nil || ok != (want > 0) || ok && f.Format != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestDigest: it is of everything that a plan says, and not of what names it.
func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(p *Plan) string {
		d, err := p.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	p := savedPlan()
	was := digest(p)
	p.Sum = "sha256:of another"
	if digest(p) != was {
		t.Error("it is of itself too")
	}
	p.Steps[2].Needs = nil
	if digest(p) == was {
		t.Error("a need less, and the same digest")
	}
}

// FuzzReadPlan: no bytes make Open panic, and what it takes with a valid seal is what
// Save writes.
func FuzzReadPlan(f *testing.F) {
	key := Key("k")
	var b bytes.Buffer
	if err := Save(&b, savedPlan(), key); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("{\"format\":2,\"steps\":1}\n\"\\\"a\\\"\"\n{\"of\":\"n1\",\"id\":0}\n{\"seal\":{}}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, _, err := Open(bytes.NewReader(b), key)
		if err != nil || slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Subject == subject.ID{} }) { // of no subject: not to be decoded
			return
		}
		var again bytes.Buffer
		if err := Save(&again, p, key); err != nil {
			t.Fatal(err)
		}
		back, problem, err := Open(&again, key)
		if err != nil || problem != "" || !reflect.DeepEqual(jsonOf(t, p), jsonOf(t, back)) {
			t.Fatalf("written again: %q, %v", problem, err)
		}
	})
}

func jsonOf(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
