// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestQuickFact: facts as the store writes them are decoded without encoding/json,
// and to what it makes of them; others are left to it.
func TestQuickFact(t *testing.T) {
	t.Parallel()
	k := fact.Key{Subject: subject.OfNode("n1"), Name: "node.serial"}
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	for _, f := range []fact.Fact{
		{Key: k, Value: json.RawMessage(`"S\"1<é>"`), Part: "p\\1", Step: "n1/bmc", Observed: at},
		{Key: k, Value: json.RawMessage(`{"a":[1,{"b":"]}"}]}`), Observed: at},
		{Key: k, Value: json.RawMessage(`false`)},
	} {
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var want fact.Fact
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := quickFact(k, b); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", b, ok, got, want)
		}
		other := fact.Key{Subject: subject.OfNode("n2"), Name: k.Name}
		for what, spoilt := range map[string]string{"spaces": strings.Replace(string(b), ",", ", ", 1), "capitals": strings.Replace(string(b), `"value"`, `"Value"`, 1),
			"no value": strings.Replace(string(b), string(want.Value), "null", 1), "cut short": string(b[:len(b)-1])} {
			if got, ok := quickFact(k, []byte(spoilt)); ok {
				t.Errorf("%s: %+v", what, got)
			}
		}
		if got, ok := quickFact(other, b); ok {
			t.Errorf("of another key: %+v", got)
		}
	}
}
