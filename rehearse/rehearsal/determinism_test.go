// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// repeats says how often TestSameSeedSameVerdicts rehearses: "some", or "all".
var repeats = flag.String("repeats", "some", "rehearsals with one seed to compare: some or all")

// plantedIn reads the faults of a file beside the demo site.
func plantedIn(t testing.TB, path string) []fault.Fault {
	t.Helper()
	all, _, diags := fault.Read(path)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return all
}

// planted parses faults.
func planted(t testing.TB, texts ...string) (all []fault.Fault) {
	t.Helper()
	for _, text := range texts {
		f, err := fault.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// verdicts is what a rehearsal says of every node and every fault.
func verdicts(s rehearsal.Summary) string {
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, n := range s.Accepted {
		line("accepted %s", n)
	}
	for _, q := range s.Quarantined {
		line("quarantined %s: %s: %s: %s", q.Node, q.Part, q.Cause, q.Action)
	}
	for _, w := range s.Waiting {
		line("waiting %s: %s", w.Node, w.Cause)
	}
	for _, f := range s.Findings {
		line("finding %s: %s", f.Part, f.Cause)
	}
	for _, f := range s.Faults {
		line("fault %s at %s: %v", f.Kind, f.Where, f.Found)
	}
	line("outcome %s after %d runs", s.Outcome, s.Runs)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// blames is verdicts without what was measured.
func blames(s rehearsal.Summary) string {
	s.Quarantined = slices.Clone(s.Quarantined)
	for i := range s.Quarantined {
		s.Quarantined[i].Cause = ""
	}
	return verdicts(s)
}

// difference shows the lines that only one side has.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	var out []string
	for _, l := range g {
		if !slices.Contains(w, l) {
			out = append(out, "got  "+l)
		}
	}
	for _, l := range w {
		if !slices.Contains(g, l) {
			out = append(out, "want "+l)
		}
	}
	return strings.Join(out, "\n")
}

// busy keeps every processor busy, outside of the rehearsal's time, until the
// function that it returns is called.
func busy() (end func()) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for x := uint64(1); ; x = x*6364136223846793005 + 1 {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	return func() { close(stop); wg.Wait() }
}

// TestSameSeedSameVerdicts rehearses the same site with the same seed: as it comes, on
// one processor, and beside goroutines that want every processor. Other seeds make other
// noise, and blame the same parts of the same nodes. `make nightly` does it 20 times.
func TestSameSeedSameVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name      string
		faults    []fault.Fault
		runs, all [4]int // the first one included: as it comes, on one processor, beside others, with other seeds
	}{
		{"three", plantedIn(t, demo+"/faults/three.hcl"), [4]int{1, 1, 1, 0}, [4]int{12, 4, 4, 2}},
		{"many", planted(t, "kind=dhcp-loss,node=r01-u09", "kind=disk-write-error,node=r01-u17",
			"kind=pdu-trip,pdu=r01/b", "kind=controller-kill,at=install.write"), [4]int{1, 1, 0, 1}, [4]int{2, 2, 2, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := rehearse(t, rehearsal.Options{Seed: 11, Faults: tt.faults})
			if !want.AsExpected() || want.Waiting != nil {
				t.Fatalf("it did not go as expected\n%s", verdicts(want))
			}
			if *repeats == "all" {
				tt.runs = tt.all
			}
			compare := func(n int, seed uint64, say func(rehearsal.Summary) string) {
				for range n {
					got := rehearse(t, rehearsal.Options{Seed: seed, Faults: tt.faults})
					if g, w := say(got), say(want); g != w {
						t.Errorf("seed %d: other verdicts\n%s", seed, difference(g, w))
					}
					seed += seed - 11 // the same one stays
				}
			}
			compare(tt.runs[0]-1, 11, verdicts)
			procs := runtime.GOMAXPROCS(1)
			compare(tt.runs[1], 11, verdicts)
			runtime.GOMAXPROCS(procs)
			end := busy()
			compare(tt.runs[2], 11, verdicts)
			end()
			compare(tt.runs[3], 12, blames)
			t.Log(verdicts(want))
		})
	}
}
