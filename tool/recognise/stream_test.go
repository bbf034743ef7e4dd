// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

// asJSON is all of a reading, or its error.
func asJSON(t *testing.T, r Reading, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + err.Error()
	}
	out, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// outputs is what a reading has of each output, in no order.
func outputs(t *testing.T, r Reading) string {
	all := []string{r.Kind + content(t, r.Content)}
	for _, o := range r.Others {
		all = append(all, o.Kind+content(t, o.Content))
	}
	slices.Sort(all)
	return asJSON(t, Reading{Content: all}, nil)
}

// logs are the samples of formats that are read line by line.
func logs(t testing.TB) map[string][]byte {
	t.Helper()
	all := samples(t)
	maps.DeleteFunc(all, func(name string, _ []byte) bool {
		i := slices.IndexFunc(knownFormats(), func(f tool.Format) bool { return f.Name == kindOf(name) })
		return knownFormats()[i].Stream == nil
	})
	return all
}

// mutate cuts, repeats, swaps and breaks lines of a log, and puts outputs of other
// programs between them.
func mutate(r *rand.Rand, data []byte, others [][]byte) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	for range 1 + r.IntN(6) {
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(6) {
		case 0:
			lines[i], lines[j] = lines[j], lines[i]
		case 1:
			lines = slices.Insert(lines, i, lines[min(i, j):max(i, j)]...)
		case 2:
			lines[i] = []byte("\n")
		case 3:
			lines[i] = append(bytes.Clone(lines[i][:len(lines[i])/2]), '\n')
		case 4:
			lines[i] = append([]byte("\x1b[31m"), lines[i]...)
		case 5:
			lines = slices.Delete(lines, min(i, j), min(min(i, j)+3, len(lines)-1))
		}
		if len(lines) < 2 {
			return data
		}
	}
	if r.IntN(2) == 0 {
		lines = slices.Insert(lines, len(lines)*3/4, slices.Concat([]byte("\n"), others[r.IntN(len(others))], []byte("\n")))
	}
	return slices.Concat(lines...)
}

// versions are what lines say that stand between two outputs and may be of either.
var versions = regexp.MustCompile(`"(?:version|library)":"[^"]*"`)

// TestLongLineByLine: a log that is read line by line is read as it is whole, also
// mutated, within labels, and with outputs of other programs within it. Seed and number
// of a difference are in its name.
func TestLongLineByLine(t *testing.T) {
	t.Parallel()
	all := logs(t)
	others := [][]byte{}
	for _, name := range []string{"testdata/show_gids.txt", "testdata/nvidia-smi.txt", "testdata/ibstat.txt"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, data)
	}
	rounds := 30
	if testing.Short() {
		rounds = 6
	}
	streamed := 0
	for seed, name := range slices.Sorted(maps.Keys(all)) {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		for round := range rounds {
			data := bytes.TrimSuffix(all[name], []byte("\n"))
			data = append(data, '\n')
			for len(data) < 4<<10 { // long enough for a beginning by which it is recognised
				data = append(data, data...)
			}
			if round > 0 {
				data = mutate(r, data, others)
			}
			if round%5 == 4 {
				data = each(data, func(line string) string { return "n1: " + line })
			}
			whole := len(data) * (3 + r.IntN(5)) / 8
			l, ok := beginLog(knownFormats(), data[:whole/2])
			if !ok {
				continue
			}
			streamed++
			want, wantErr := Read("f", data)
			w := asJSON(t, want, wantErr)
			var in io.Reader = bytes.NewReader(data)
			if round%2 == 0 {
				in = onlyReader{in}
			}
			got, err := readFrom("f", in, whole, MaxSize)
			differ(t, fmt.Sprintf("%s, round %d, begun as %s", name, round, l.format.Name), asJSON(t, got, err), w)
			// As it is too long to be read again: some of other outputs is read otherwise.
			got, err = readFrom("f", bytes.NewReader(data), whole, whole)
			g := asJSON(t, got, err)
			if err == nil && wantErr == nil && got.Kind != want.Kind { // which of several outputs is the file's own depends on how far below it is
				g, w = outputs(t, got), outputs(t, want)
			}
			if want.Kind != l.format.Name { // of a log below another output, lines of the content were those of its part
				g, w = placed.ReplaceAllString(g, ""), placed.ReplaceAllString(w, "")
			}
			g, w = versions.ReplaceAllString(g, ""), versions.ReplaceAllString(w, "")
			differ(t, fmt.Sprintf("%s, round %d, begun as %s, not read again", name, round, l.format.Name), g, w)
		}
	}
	if streamed < rounds {
		t.Errorf("only %d logs were read line by line", streamed)
	}
}

// onlyReader hides what else an input can do, as a pipe cannot.
type onlyReader struct{ io.Reader }

// differ reports where one of two texts differs from the other.
func differ(t *testing.T, name, g, w string) {
	t.Helper()
	if g == w {
		return
	}
	at := 0
	for at < min(len(g), len(w)) && g[at] == w[at] {
		at++
	}
	at = max(at-200, 0)
	t.Errorf("%s: got\n[...]%.500s\nwant\n[...]%.500s", name, g[min(at, len(g)):], w[min(at, len(w)):])
}

// TestLineIsCut: of a line that is longer than can be held, the beginning is read, which
// is a problem, unless the file can be read whole.
func TestLineIsCut(t *testing.T) {
	t.Parallel()
	log := bytes.Repeat([]byte("[    1.500000] usb 1-1: new device\n"), 1000)
	data := slices.Concat(log, []byte("[    2.500000] "), bytes.Repeat([]byte("x"), 2*longestLine), []byte("\n[    3.500000] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"), log)
	for most, cut := range map[int]bool{MaxSize: false, len(data) - 1: true} {
		r, err := readFrom("f", bytes.NewReader(data), 8<<10, most)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(r.Problems, func(p tool.Problem) bool { return p.Kind == tool.Truncated && p.Line == 1001 })
		if got != cut || !strings.Contains(asJSON(t, r, nil), `"line":1002`) {
			t.Errorf("at most %d: %+v", most, r)
		}
	}
}
