// SPDX-License-Identifier: Apache-2.0

package switchos

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
)

// configFact is what a switch had when it was read last, of what the site may ever
// write: that a plan can say what would change without asking the switch.
const configFact = fact.Name[Remembered]("switch.config")

// Remembered is a configuration as it is kept: the JSON of a sonic.Config, packed, for
// that of a leaf has 50 KiB.
type Remembered struct {
	Gzip []byte `json:"gzip,omitempty"` // empty: it was too large
}

// Bounds of what is remembered of one switch, bytes: packed and in full. A switch with
// more is read anew when somebody wants to know.
const (
	mostPacked = 256 << 10
	mostKept   = 16 << 20
)

// packConfig packs a configuration; nothing of one that is too large. The same
// configuration is the same bytes.
func packConfig(have sonic.Config) Remembered {
	text, err := json.Marshal(have.Kept())
	if err != nil || len(text) > mostKept {
		return Remembered{}
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil || w.Close() != nil || b.Len() > mostPacked {
		return Remembered{}
	}
	return Remembered{b.Bytes()}
}

// config unpacks what is remembered.
func (r Remembered) config() (have sonic.Config, err error) {
	z, err := gzip.NewReader(bytes.NewReader(r.Gzip))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, mostKept))
	if err != nil {
		return nil, err
	}
	return have, json.Unmarshal(text, &have)
}

// Preview is what a switch's step would write, by what was read of the switch last.
type Preview struct {
	Operations []plan.Operation
	Read       time.Time // zero: it was never read, or that is not remembered

	of *sonic.Switch
}

// Tables are the names of the inputs of the step that stand for tables.
func (f Preview) Tables() []string { return slices.Sorted(maps.Keys(f.of.Render())) }

// Preview says what the step of a switch would write; false: it is no step of a
// switch. It is pure.
func (k *Kind) Preview(v stage.View, st plan.Step) (Preview, bool) {
	s := k.of(st)
	if s == nil {
		return Preview{}, false
	}
	preview := Preview{of: s}
	f, known := v.Fact(configFact.Of(Of(s.Switch)))
	if !known {
		return preview, true
	}
	kept, err := configFact.Get(f)
	if err != nil {
		return preview, true
	}
	if have, err := kept.config(); err == nil {
		preview.Operations, preview.Read = listOperations(s, s.Compare(have)), f.Observed
	}
	return preview, true
}

// of is the switch that a step configures; nil: it is another step.
func (k *Kind) of(st plan.Step) *sonic.Switch {
	for _, f := range k.inv.Fabrics {
		if f.Kind != roce.Name || !strings.HasSuffix(string(st.ID), partOf(f)) {
			continue
		}
		if s, err := k.find(f, st); err == nil {
			return s
		}
	}
	return nil
}

// partOf ends the ids of the steps of the switches of a fabric.
func partOf(f *inventory.Fabric) string {
	return strings.TrimPrefix(string(StepID(&inventory.Switch{}, f)), "/")
}

// listOperations returns the differences of a switch as what a patch does about them. What the
// switch says of itself is escaped.
func listOperations(s *sonic.Switch, list []sonic.Difference) []plan.Operation {
	want := s.Render()
	ops := make([]plan.Operation, 0, len(list))
	for _, d := range list {
		to, wanted := want[d.Table][d.Key][d.Field]
		o := plan.Operation{Do: plan.Changes, Table: d.Table, Key: d.Key, Field: d.Field, From: escapeValue(d.Have), To: to}
		switch {
		case d.Field == "":
			o.Do, o.To = plan.Adds, formatEntry(want[d.Table][d.Key])
		case !wanted:
			o.Do = plan.Removes
		case d.Have == "":
			o.Do = plan.Adds
		}
		ops = append(ops, o)
	}
	return ops
}

// escapeValue returns a value of a switch as a plan has it.
func escapeValue(value string) string {
	const most = 200
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "..."
	}
	return event.Escape(value)
}

// formatEntry returns the fields of a key that is new.
func formatEntry(e sonic.Entry) string {
	fields := slices.SortedFunc(maps.Keys(e), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	for i, name := range fields {
		fields[i] = fmt.Sprintf("%s=%s", name, e[name])
	}
	return strings.Join(fields, " ")
}
