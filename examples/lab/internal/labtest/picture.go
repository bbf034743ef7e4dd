// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/state"
)

var update = flag.Bool("update", false, "write golden files")

// constant are the facts whose values are the same in every run; of the others
// only the names are.
var constant = []string{"node.identity", "install.disk", "bmc.report", "fabric.ports.rail"}

// SamePicture fails the test unless facts and verdicts are those of the file.
func (l *Lab) SamePicture(file string) {
	l.t.Helper()
	got := strings.Join(append(l.facts(), l.Verdicts()...), "\n") + "\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			l.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // no secret
			l.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		l.t.Errorf("facts and verdicts are not those of %s (%v):\n%s", file, err, got)
	}
}

func (l *Lab) facts() (lines []string) {
	l.t.Helper()
	s := l.store()
	defer s.Close()
	facts, err := state.ReadFacts(l.t.Context(), s)
	if err != nil {
		l.t.Fatal(err)
	}
	for k, f := range facts {
		line := k.String()
		if slices.Contains(constant, k.Name) {
			line += " " + string(f.Value)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// Effects are all outcomes of effects in the journal, oldest first.
func (l *Lab) Effects() (out []state.Effect) {
	l.t.Helper()
	for _, r := range l.Journal() {
		if r.Kind != state.EffectOutcome {
			continue
		}
		var e state.Effect
		if err := json.Unmarshal(r.Data, &e); err != nil {
			l.t.Fatalf("record %d: %v", r.Seq, err)
		}
		out = append(out, e)
	}
	return out
}

// FirstBootWritten is how many bytes went to a machine's disk between its first
// power on and the next reset: those of the install ramdisk.
func (l *Lab) FirstBootWritten(machine string) int64 {
	l.t.Helper()
	f, err := os.Open(filepath.Join(l.machines, "effects.jsonl"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var e struct {
			Machine, Kind string
			Written       int64
		}
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			l.t.Fatal(err)
		}
		if e.Machine == machine && (e.Kind == "reset" || e.Kind == "stop") {
			return e.Written
		}
	}
	l.t.Fatal(fmt.Errorf("%s was never reset", machine))
	return 0
}
