// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"

	"github.com/ironrail/ironrail/internal/fact"
)

// quickFact decodes a fact that was asked for by its key; false: it is to be decoded
// otherwise. Its value stays in b.
func quickFact(k fact.Key, b []byte) (f fact.Fact, ok bool) {
	w := walk{b: b}
	for w.field() {
		v := w.value()
		switch string(w.key) {
		case "key":
			w.bad = w.bad || string(v) != `"`+k.String()+`"`
			f.Key = k
		case "value":
			f.Value = v
			w.bad = w.bad || string(v) == "null"
		case "part":
			w.bad = w.bad || json.Unmarshal(v, &f.Part) != nil
		case "step":
			w.bad = w.bad || json.Unmarshal(v, &f.Step) != nil
		case "observed":
			w.bad = w.bad || f.Observed.UnmarshalJSON(v) != nil
		}
	}
	return f, w.whole() && f.Key == k
}
