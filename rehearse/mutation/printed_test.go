// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/dcgmi"
	"github.com/ironrail/ironrail/tool/nccltests"
	"github.com/ironrail/ironrail/tool/perftest"
	"github.com/ironrail/ironrail/tool/recognise"
	"github.com/ironrail/ironrail/tool/rvs"
)

// printed are programs whose texts are changed, number by number, with files of their outputs: those
// that the readers are tested with, which follow real ones.
var printed = map[string]struct {
	parse func([]byte) (any, tool.Problems, error)
	files []string
}{
	"ib_write_bw": {reader(perftest.Parse), []string{"../../tool/recognise/testdata/perftest.write.txt"}},
	"nccl-tests":  {reader(nccltests.Parse), []string{"../../tool/recognise/testdata/nccl-tests.two-nodes.txt", "../../tool/recognise/testdata/rccl-tests.one-node.txt"}},
	"dcgmi":       {reader(dcgmi.Parse), []string{"../../tool/recognise/testdata/dcgmi.diag.txt", "../../tool/recognise/testdata/dcgmi.diag4.json"}},
	"rvs":         {reader(rvs.Parse), []string{"../../tool/recognise/testdata/rvs.txt"}},
	"fabric texts": {readAny, inTestdata("sminfo.txt", "saquery.managers.txt", "saquery.ports.txt", "perfquery.txt", "ibdiagnet.txt", "opensm-log.txt", "lldpctl.txt", "lldpctl.json", "sonic-show.counters.txt", "sonic-show.pfc.txt", "sonic-show.queues.txt",
		"sonic-show.status.txt", "sonic-show.lldp.txt", "nvidia-imex-ctl.txt", "nvidia-imex-ctl.json", "ibqueryerrors.txt", "iblinkinfo.lines.txt")},
}

func inTestdata(names ...string) (list []string) {
	for _, n := range names {
		list = append(list, "../../tool/recognise/testdata/"+n)
	}
	return list
}

// readAny reads a text as `ironrail read` does.
func readAny(b []byte) (any, tool.Problems, error) {
	r, err := recognise.Read("text", b)
	return r.Content, r.Problems, err
}

func reader[T any](parse func([]byte) (T, tool.Problems, error)) func([]byte) (any, tool.Problems, error) {
	return func(b []byte) (any, tool.Problems, error) { return parse(b) }
}

// number is a number of a text that stands by itself.
var number = regexp.MustCompile(`(^|[\s\[(:=,"])(\d+(?:\.\d+)?)($|[\s\])%,;"/]|[A-Za-z])`)

// TestPrinted changes each number of a program's text by itself, up and down: what the program's reader
// makes of the text must become another, or it complains. A number that it does not read stands
// in the list, by the shape of its line.
func TestPrinted(t *testing.T) {
	t.Parallel()
	listed, err := excused()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(printed)) {
		p, missed, total, found := printed[name], map[string]string{}, 0, 0
		for _, file := range p.files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			n, k := changeNumbers(t, name, p.parse, string(b), missed)
			total, found = total+n, found+k
		}
		t.Logf("%s: %d changes, %d read; %d shapes are not", name, total, found, len(missed))
		compare(t, name, missed, listed)
	}
}

// mostLinesChanged bounds how much of a text is changed: tables repeat their lines.
const mostLinesChanged = 400

func changeNumbers(t *testing.T, name string, parse func([]byte) (any, tool.Problems, error), text string, missed map[string]string) (total, found int) {
	t.Helper()
	was, problems, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	lines := strings.SplitAfter(text, "\n")
	seen := map[string]int{}
	for i, line := range lines[:min(len(lines), mostLinesChanged)] {
		shape := shapeOf(line)
		if seen[shape]++; seen[shape] > 2 {
			continue
		}
		for nth, at := range number.FindAllStringSubmatchIndex(line, -1) {
			for _, c := range []Change{Lowered, Raised} {
				value, ok := scaleText(line[at[4]:at[5]], c)
				if !ok {
					continue
				}
				changed := slices.Clone(lines)
				changed[i] = line[:at[4]] + value + line[at[5]:]
				is, complaints, err := parse([]byte(strings.Join(changed, "")))
				total++
				if err != nil || !reflect.DeepEqual(was, is) || !reflect.DeepEqual(problems, complaints) {
					found++
					continue
				}
				if key := fmt.Sprintf("%s %s number %d", name, shape, nth+1); !strings.ContainsRune(missed[key], rune(c)) {
					missed[key] += string(c)
				}
			}
		}
	}
	return total, found
}

// shapeOf is a line with its numbers taken out, cut short.
func shapeOf(line string) string {
	words := strings.Fields(regexp.MustCompile(`[0-9a-fA-F]*\d[0-9a-fA-F.:]*`).ReplaceAllString(line, "N"))
	return strings.Join(words[:min(len(words), 6)], " ")
}

// scaleText lowers or raises a number by a fifth, a whole one by 1 at least.
func scaleText(text string, c Change) (string, bool) {
	x := reflect.New(reflect.TypeFor[int64]()).Elem()
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		x.SetInt(n)
		return strconv.FormatInt(scaled(x, c).Int(), 10), n != 0 || c == Raised
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", false
	}
	y := reflect.New(reflect.TypeFor[float64]()).Elem()
	y.SetFloat(v)
	_, decimals, _ := strings.Cut(text, ".")
	return strconv.FormatFloat(scaled(y, c).Float(), 'f', len(decimals), 64), v != 0 || c == Raised
}

func scaled(x reflect.Value, c Change) reflect.Value {
	scale(x, c)
	return x
}
