// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// Shelf reads a power shelf.
type Shelf interface {
	ReadShelf(ctx context.Context) (ShelfReading, error)
}

// ShelfReading is what the management controller of a power shelf said.
type ShelfReading struct {
	At           time.Time     `json:"at"`
	Manufacturer string        `json:"manufacturer,omitempty"`
	Model        string        `json:"model,omitempty"`
	Serial       string        `json:"serial,omitempty"`
	Supplies     []ShelfSupply `json:"supplies"` // in the order of the controller
	Certificate  string        `json:"-"`        // SHA-256 of what it showed, in lower-case hex
}

// ShelfSupply is one supply of a shelf.
type ShelfSupply struct {
	Name    string `json:"name"`
	Absent  bool   `json:"absent,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	Off     bool   `json:"off,omitempty"`
	NoInput bool   `json:"no_input,omitempty"`
	Says    string `json:"says,omitempty"` // the controller's words for its state
}

// part is what a supply is called in findings.
func (p ShelfSupply) part() string { return "supply " + p.Name }

// What the stage learns of a power shelf.
const (
	shelfFact = fact.Name[ShelfReading]("shelf.reading")
	// ShelfCertificateFact is the certificate that a shelf showed when it was first believed.
	ShelfCertificateFact = fact.Name[string]("shelf.certificate")
)

// OfShelf is the subject of a power shelf.
func OfShelf(s *inventory.Shelf) subject.ID { return subject.ID{Kind: subject.Shelf, Name: s.Name} }

// shelfSteps read the power shelves of a rack, once the nodes that draw from them were
// under load.
func shelfSteps(r *inventory.Rack) (steps []plan.Step) {
	var after []plan.Need
	for _, sh := range r.Shelves {
		if sh.Control == nil {
			continue
		}
		if after == nil {
			after = needsOf(onShelves(r))
		}
		steps = append(steps, plan.Step{ID: plan.StepID(sh.Name + "/" + Name + ".shelf"), Stage: Name, Subject: OfShelf(sh),
			Title: fmt.Sprintf("read power shelf %s at %s: its %d supplies and their input", sh.Name, sh.Control.Address, sh.Count),
			Decl:  stage.Source(sh.Control.Decl), Deadline: plan.Budget{Limit: limit, Expected: 5 * time.Second}, Version: Version,
			Yields: []fact.Key{shelfFact.Of(OfShelf(sh)), ShelfCertificateFact.Of(OfShelf(sh))}, Needs: slices.Clone(after)})
	}
	return steps
}

// onShelves lists the installed nodes that draw from the shelves of their rack.
func onShelves(r *inventory.Rack) (nodes []*inventory.Node) {
	for _, n := range r.Nodes {
		if n.Image != nil && len(n.Feeds) == 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// applyShelf reads a shelf and blames what is wrong with it.
func (s *Stage) applyShelf(ctx context.Context, run stage.Run, name string) error {
	sh, ok := s.findShelf(name)
	if !ok {
		return errkind.New(errkind.NotFound, "power shelf %s is planned for but not in the inventory", name).Do("Make a new plan: `ironrail plan`.")
	}
	r, err := s.readShelf(ctx, sh)
	if err != nil {
		f := stage.Finding{Suspects: []stage.Suspect{{Subject: OfShelf(sh)}}, Cause: "the power shelf cannot be read", Evidence: []string{err.Error()}, Action: errkind.Action(err)}
		if berr := run.Blame(ctx, f); berr != nil {
			return berr
		}
		return err
	}
	reading, err := shelfFact.New(OfShelf(sh), r, "")
	if err != nil {
		return err
	}
	facts := []fact.Fact{reading}
	if r.Certificate != "" {
		shown, err := ShelfCertificateFact.New(OfShelf(sh), r.Certificate, "")
		if err != nil {
			return err
		}
		facts = append(facts, shown)
	}
	if err := run.Learn(ctx, facts...); err != nil {
		return err
	}
	found, err := blameShelf(ctx, run, sh, r)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return errkind.New(errkind.Mismatch, "power shelf %s: %s", sh.Name, found[0].Cause).Do(found[0].Action)
	}
	return nil
}

func (s *Stage) readShelf(ctx context.Context, sh *inventory.Shelf) (ShelfReading, error) {
	reader, err := s.deps.Shelf(sh)
	if err != nil {
		return ShelfReading{}, err
	}
	return reader.ReadShelf(ctx)
}

// LookAtShelf reads a shelf now and blames by the run what the stage's own step would find.
// It changes nothing. The error says that the shelf could not be read.
func (s *Stage) LookAtShelf(ctx context.Context, run stage.Run, sh *inventory.Shelf) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := s.readShelf(ctx, sh)
	if err != nil {
		return err
	}
	_, err = blameShelf(ctx, run, sh, r)
	return err
}

// blameShelf blames what is wrong with a shelf, and returns it.
func blameShelf(ctx context.Context, run stage.Run, sh *inventory.Shelf, r ShelfReading) ([]stage.Finding, error) {
	found := shelfFindings(sh, r)
	for _, f := range found {
		if err := run.Blame(ctx, f); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// findShelf returns a shelf by its scoped name.
func (s *Stage) findShelf(name string) (*inventory.Shelf, bool) {
	for _, r := range s.inv.Racks {
		if i := slices.IndexFunc(r.Shelves, func(sh *inventory.Shelf) bool { return sh.Name == name }); i >= 0 {
			return r.Shelves[i], true
		}
	}
	return nil, false
}

// shelfFindings finds what is wrong with a shelf: supplies without input first, since they
// have one cause, which is in front of the shelf; then each of those that are missing, off
// or failed.
func shelfFindings(sh *inventory.Shelf, r ShelfReading) (found []stage.Finding) {
	var dark, there []string
	for _, p := range r.Supplies {
		if p.Absent {
			continue
		}
		there = append(there, p.part())
		if p.NoInput {
			dark = append(dark, p.part())
		}
	}
	seen := fmt.Sprintf("power shelf %s (%s) names %d supplies", sh.Name, strings.Join(strings.Fields(r.Manufacturer+" "+r.Model+" "+r.Serial), " "), len(r.Supplies))
	if bad := notWell(r.Supplies); len(bad) > 0 {
		seen += ": " + strings.Join(bad, "; ")
	}
	if len(dark) > 0 {
		found = append(found, inputFinding(sh, dark, len(dark) == len(there), seen))
	}
	if len(there) < sh.Count {
		found = append(found, stage.Finding{Suspects: []stage.Suspect{{Subject: OfShelf(sh), Part: "supplies"}},
			Cause: fmt.Sprintf("%d of its %d supplies are there", len(there), sh.Count), Evidence: []string{seen},
			Action: fmt.Sprintf("Look into power shelf %s in rack %s, unit %d: seat or add the supplies that are missing, or correct count.", sh.Name, sh.Rack.Name, sh.Unit)})
	}
	for _, p := range r.Supplies {
		cause, action := "", ""
		switch {
		case p.Absent || p.NoInput:
		case p.Off:
			cause, action = "it is switched off", "Find out who switched it off, and switch it on again."
		case p.Failed:
			cause, action = "it has failed: "+p.Says, "Have the supply replaced; the others carry its load until then."
		}
		if cause != "" {
			found = append(found, stage.Finding{Suspects: []stage.Suspect{{Subject: OfShelf(sh), Part: p.part()}}, Cause: cause, Evidence: []string{seen}, Action: action})
		}
	}
	return found
}

// inputFinding blames what feeds a shelf: the PDU or the whip where all supplies hang on one
// and all of them are dark, else the input of those that are.
func inputFinding(sh *inventory.Shelf, dark []string, all bool, seen string) stage.Finding {
	f := stage.Finding{Cause: fmt.Sprintf("%s of power shelf %s have no input", strings.Join(dark, ", "), sh.Name), Evidence: []string{seen},
		Action: fmt.Sprintf("Look for the breaker of what feeds power shelf %s in rack %s, and for what tripped it, before closing it; the other shelves carry the rack without redundancy until then.", sh.Name, sh.Rack.Name)}
	if pdu := onlyFeed(sh); all && pdu != nil {
		f.Cause = fmt.Sprintf("no supply of power shelf %s has input: nothing comes through %s", sh.Name, pdu.Name)
		f.Suspects = []stage.Suspect{{Subject: Of(pdu)}}
		return f
	}
	for _, name := range dark {
		f.Suspects = append(f.Suspects, stage.Suspect{Subject: OfShelf(sh), Part: name})
	}
	if len(dark) == 1 {
		f.Cause = fmt.Sprintf("%s of power shelf %s has no input", dark[0], sh.Name)
	}
	return f
}

// onlyFeed is the one PDU or whip that all supplies of a shelf hang on; nil: there are
// several, or the site does not say.
func onlyFeed(sh *inventory.Shelf) *inventory.PDU {
	if len(sh.Feeds) == 0 {
		return nil
	}
	for _, f := range sh.Feeds {
		if f.PDU == nil || f.PDU != sh.Feeds[0].PDU {
			return nil
		}
	}
	return sh.Feeds[0].PDU
}

// notWell says of each supply that is not well how it is.
func notWell(list []ShelfSupply) (words []string) {
	for _, p := range list {
		is := ""
		switch {
		case p.Absent:
			is = "not there"
		case p.NoInput:
			is = "without input"
		case p.Off:
			is = "off"
		case p.Failed:
			is = "failed"
		default:
			continue
		}
		words = append(words, fmt.Sprintf("%s is %s (%s)", p.Name, is, p.Says))
	}
	return words
}
