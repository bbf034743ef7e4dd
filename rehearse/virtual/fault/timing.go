// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Timing says when a fault begins behind its moment, and how it comes and goes. The zero
// value is one that begins at its moment and stays.
type Timing struct {
	After time.Duration `json:"after,omitempty"` // behind its moment
	For   time.Duration `json:"for,omitempty"`   // how long it is there each time; 0: it stays
	Every time.Duration `json:"every,omitempty"` // from one time to the next; 0: it comes once
	// Probability is that with which it comes each time; 0: it always does.
	Probability float64 `json:"probability,omitempty"`
}

// Attributes of timing.
const (
	attrAfter       = "after"
	attrFor         = "for"
	attrEvery       = "every"
	attrProbability = "probability"
)

// Bounds of timing. A rehearsal waits for what begins late, and what comes more often
// than a port trains is one that is down.
const (
	mostAfter  = 24 * time.Hour
	leastFor   = time.Second
	leastEvery = 10 * time.Second
	// mostTimes is how often a rehearsal lets a fault come that comes and goes.
	mostTimes = 10
)

// check refuses timing that says nothing, or that the kind cannot have.
func (t Timing) check(row Row, at string) error {
	switch {
	case at == Accepted && !row.Serving:
		return fmt.Errorf("it cannot begin on a node that is in service: at is a step before %q, or not given", Accepted)
	case t.After < 0 || t.After > mostAfter:
		return fmt.Errorf("after is between 0s and %s, not %s", mostAfter, t.After)
	case t.After > 0 && !row.Serving:
		return fmt.Errorf("it is there from its moment on, and takes no after")
	case t.For != 0 && !row.Passing:
		return fmt.Errorf("it does not come and go, and takes no for, every and probability")
	case t.For == 0 && (t.Every != 0 || t.Probability != 0):
		return fmt.Errorf("every and probability are of a fault that comes and goes: say how long it is there each time, as in for = \"30s\"")
	}
	return t.checkSpells()
}

// checkSpells refuses times of a fault that comes and goes which it cannot have.
func (t Timing) checkSpells() error {
	switch {
	case t.For != 0 && t.For < leastFor:
		return fmt.Errorf("for is at least %s, not %s", leastFor, t.For)
	case t.Every != 0 && t.Every < leastEvery:
		return fmt.Errorf("every is at least %s, not %s", leastEvery, t.Every)
	case t.Every != 0 && t.For >= t.Every:
		return fmt.Errorf("for (%s) is shorter than every (%s): it would never go", t.For, t.Every)
	case t.Probability != 0 && t.Every == 0:
		return fmt.Errorf("probability is that of each time: say every")
	}
	return nil
}

// Spell is one time that a fault is there, counted from its moment.
type Spell struct {
	From, To time.Duration // To is 0 of one that stays
}

// Spells are the times at which a fault is there, in their order: a fault that comes and goes
// comes ten times at most. The same seed has the same ones.
func (f Fault) Spells(seed uint64) (list []Spell) {
	if f.For == 0 {
		return []Spell{{From: f.After}}
	}
	if f.Every == 0 {
		return []Spell{{f.After, f.After + f.For}}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(f.Kind) + " " + f.Where())) // never fails
	dice := rand.New(rand.NewPCG(seed, h.Sum64()))
	for i := range mostTimes {
		from := f.After + time.Duration(i)*f.Every
		if f.Probability == 0 || dice.Float64() < f.Probability {
			list = append(list, Spell{from, from + f.For})
		}
	}
	return list
}

// Horizon is how long after its moment a fault has shown what it does.
func (t Timing) Horizon() time.Duration {
	switch {
	case t.For == 0:
		return t.After
	case t.Every == 0:
		return t.After + t.For
	}
	return t.After + (mostTimes-1)*t.Every + t.For
}
