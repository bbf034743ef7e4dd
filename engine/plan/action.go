// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Action is what a step does to its subject, as the symbol the user sees.
type Action string

// The actions.
const (
	Create  Action = "+"   // there was nothing
	Change  Action = "~"   // it is there and differs
	Replace Action = "-/+" // it is destroyed and made again
	Delete  Action = "-"   // it goes away
	Read    Action = "<"   // only looks
)

// Effect is a kind of side effect, which the plan must allow.
type Effect uint8

// The effects, in rising order of harm.
const (
	Load     Effect = 1 << iota // load on a link or a part: tests
	Config                      // configuration of a BMC, node or switch
	Power                       // power or reset
	Firmware                    // firmware written
	Erase                       // data destroyed
)

var effectNames = []struct {
	e Effect
	n string
}{{Load, "load"}, {Config, "config"}, {Power, "power"}, {Firmware, "firmware"}, {Erase, "erase"}}

// String returns the effect's name.
func (e Effect) String() string {
	for _, x := range effectNames {
		if x.e == e {
			return x.n
		}
	}
	return fmt.Sprintf("effect(%d)", uint8(e))
}

// MarshalText writes the name.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads the name.
func (e *Effect) UnmarshalText(b []byte) error {
	for _, x := range effectNames {
		if x.n == string(b) {
			*e = x.e
			return nil
		}
	}
	return fmt.Errorf("effect %q is not known", b)
}

// EffectSet is the set of effects a step may have. In JSON it is a list of names.
type EffectSet uint8

// Effects makes a set.
func Effects(es ...Effect) (s EffectSet) {
	for _, e := range es {
		s |= EffectSet(e)
	}
	return s
}

// Has reports whether e is in the set.
func (s EffectSet) Has(e Effect) bool { return uint8(s)&uint8(e) != 0 }

// String lists the names.
func (s EffectSet) String() string {
	var ns []string
	for _, x := range effectNames {
		if s.Has(x.e) {
			ns = append(ns, x.n)
		}
	}
	return strings.Join(ns, ", ")
}

// MarshalJSON writes a list of names.
func (s EffectSet) MarshalJSON() ([]byte, error) {
	es := []Effect{}
	for _, x := range effectNames {
		if s.Has(x.e) {
			es = append(es, x.e)
		}
	}
	return json.Marshal(slices.Collect(func(yield func(string) bool) {
		for _, e := range es {
			if !yield(e.String()) {
				return
			}
		}
	}))
}

// UnmarshalJSON reads a list of names.
func (s *EffectSet) UnmarshalJSON(b []byte) error {
	var es []Effect
	if err := json.Unmarshal(b, &es); err != nil {
		return err
	}
	*s = Effects(es...)
	return nil
}
