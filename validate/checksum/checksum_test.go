// SPDX-License-Identifier: Apache-2.0

package checksum

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

// prints is what the program prints of GPUs with the given checksums of fp32, as SUM or
// SUM/OTHERS.
func prints(sums ...string) string {
	var b strings.Builder
	b.WriteString(`{"program":"ironrail_checksum","version":1,"runtime":"cuda","runtime_version":13000,"driver_api":13000,"module":"580.1\n","steps":262144}` + "\n")
	for i := range sums {
		fmt.Fprintf(&b, `{"gpu":"0000:%d0:00.0","name":"NVIDIA H100","arch":"9.0","multiprocessors":132}`+"\n", i)
	}
	b.WriteString("a line of the runtime\n")
	for i, s := range sums {
		sum, others, _ := strings.Cut(s, "/")
		if others == "" {
			others = "0"
		}
		fmt.Fprintf(&b, `{"result":"0000:%d0:00.0","unit":"fp32","checksum":%q,"rounds":90,"others":%s}`+"\n", i, sum, others)
		for _, unit := range []string{"fp64", "int", "matrix"} {
			fmt.Fprintf(&b, `{"result":"0000:%d0:00.0","unit":%q,"checksum":"01","rounds":90,"others":0}`+"\n", i, unit)
		}
	}
	fmt.Fprintf(&b, `{"end":true,"gpus":%d}`+"\n", len(sums))
	return b.String()
}

func parse(t *testing.T, text string) Record {
	t.Helper()
	r, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParse(t *testing.T) {
	t.Parallel()
	r := parse(t, prints("aa", "bb/3"))
	if r.Module != "580.1" || len(r.GPUs) != 2 || len(r.GPUs[1].Units) != 4 || r.GPUs[1].Units[0] != (Unit{"fp32", "bb", 90, 3}) {
		t.Errorf("%+v", r)
	}
	whole := prints("aa", "bb")
	for name, c := range map[string]struct {
		text, want string
		kind       errkind.Kind
	}{
		"nothing":          {"", "printed nothing", errkind.Invalid},
		"another program":  {"usage: x\n", "printed nothing", errkind.Invalid},
		"cut":              {whole[:strings.Index(whole, `{"end"`)], "did not come to its end", errkind.Interrupted},
		"a GPU missing":    {strings.Replace(whole, `"gpus":2`, `"gpus":3`, 1), "on 3 GPUs", errkind.Invalid},
		"a unit missing":   {strings.Replace(whole, `"unit":"fp64"`, `"unit":"fp8"`, 1), "fp64 of the GPU at 0000:00", errkind.Invalid},
		"a single round":   {strings.Replace(whole, `"rounds":90`, `"rounds":1`, 1), "fp32 of the GPU at 0000:00", errkind.Invalid},
		"an empty result":  {strings.Replace(whole, `"checksum":"aa"`, `"checksum":""`, 1), "fp32 of the GPU at 0000:00", errkind.Invalid},
		"a GPU too many":   {strings.Replace(whole, `"gpus":2`, `"gpus":1`, 1), "on 1 GPUs", errkind.Invalid},
		"of other numbers": {strings.Replace(whole, `"gpus":2`, `"gpus":"2"`, 1), "did not come to its end", errkind.Interrupted},
	} {
		if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || errkind.Of(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestJudge: a GPU that does not repeat itself, and one that cannot compute, are named by
// their node alone.
func TestJudge(t *testing.T) {
	t.Parallel()
	names := map[string]string{"0000:10:00.0": "GPU 1 at 0000:10:00.0"}
	if f := parse(t, prints("aa", "aa")).Judge(names); len(f) > 0 {
		t.Errorf("a good node: %+v", f)
	}
	f := parse(t, prints("aa", "aa/3")).Judge(names)
	if len(f) != 1 || f[0].Part != "GPU 1 at 0000:10:00.0" || !strings.Contains(f[0].Cause, "3 of 90 rounds of fp32") {
		t.Errorf("%+v", f)
	}
	text := prints("aa")
	text = strings.Replace(text, `{"end":true,"gpus":1}`, `{"gpu":"0000:F0:00.0","name":"NVIDIA H100"}`+"\n"+`{"error":"0000:F0:00.0","text":"fp64: unspecified launch failure"}`+"\n"+`{"end":true,"gpus":2}`, 1)
	if f = parse(t, text).Judge(nil); len(f) != 1 || f[0].Part != "GPU at 0000:f0:00.0" || !strings.Contains(f[0].Cause, "unspecified launch failure") {
		t.Errorf("%+v", f)
	}
}

// TestCompare: most of three or more that are alike are the reference; without one nobody is
// blamed.
func TestCompare(t *testing.T) {
	t.Parallel()
	node := func(name string, sums ...string) Node { return Node{name, nil, parse(t, prints(sums...))} }
	older := node("older", "cc", "cc")
	older.Module = "570.2"
	for name, c := range map[string]struct {
		nodes []Node
		odd   string // node/part of each
		notes int
	}{
		"alike":                    {[]Node{node("a", "aa", "aa"), node("b", "aa", "aa")}, "", 0},
		"one GPU of two nodes":     {[]Node{node("a", "aa", "bb"), node("b", "aa", "aa")}, "a/GPU at 0000:10:00.0", 0},
		"one of its own node":      {[]Node{node("a", "aa", "aa", "bb")}, "a/GPU at 0000:20:00.0", 0},
		"all of a node":            {[]Node{node("a", "bb", "bb"), node("b", "aa", "aa"), node("c", "aa", "aa")}, "a/GPUs", 0},
		"each of a node otherwise": {[]Node{node("a", "bb", "cc"), node("b", "aa", "aa"), node("c", "aa", "aa")}, "a/GPUs", 0},
		"two that differ":          {[]Node{node("a", "aa"), node("b", "bb")}, "", 4}, // no unit has three
		"halves":                   {[]Node{node("a", "aa", "aa"), node("b", "bb", "bb")}, "", 1},
		"another driver":           {[]Node{node("a", "aa", "aa"), node("b", "aa", "aa"), older}, "", 4},
		"single GPUs":              {[]Node{node("a", "aa"), node("b", "aa"), node("c", "aa"), node("d", "bb")}, "d/GPU at 0000:00:00.0", 0},
	} {
		rows, odd, notes := CompareNodes(c.nodes)
		var got []string
		for _, o := range odd {
			got = append(got, o.Node+"/"+o.Part)
			if len(o.Evidence) == 0 || o.Action == "" || !strings.Contains(o.Evidence[0], "driver 580.1") {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if strings.Join(got, " ") != c.odd || len(notes) != c.notes || len(rows) < 4 {
			t.Errorf("%s: %q, notes %q", name, got, notes)
		}
	}
}

// TestPeerProgram compiles the program by a compiler of C++, for which a processor of this
// machine is the GPU: what it computes is the same each time and by two ways of rounding
// once, another number of steps gives something else, and so does a processor that adds one
// bit.
func TestPeerProgram(t *testing.T) {
	peertest.Need(t, "g++")
	const source = "../../images/driver/tools/checksum/gpu_checksum.cu"
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), "x = rx * fma(-x, x, x);", "x = rx * fma(-x, x, x); if (sizeof x == 4 && id == 77 && i == 500) x = nextafterf(float(x), 2);", 1)
	dir := t.TempDir()
	compute := func(name, text, flag string, argv ...string) Record {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at+".cu", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if out, err := exec.CommandContext(ctx, "g++", "-x", "c++", flag, "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-pthread", "-o", at, at+".cu").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := exec.CommandContext(ctx, at, argv...).Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return parse(t, string(out))
	}
	sums := func(r Record) (list []string) {
		for _, u := range r.GPUs[0].Units {
			if u.Others != 0 || u.Rounds < 2 {
				t.Errorf("%+v", u)
			}
			list = append(list, u.Name+" "+u.Checksum)
		}
		return list
	}
	good := sums(compute("good", string(text), "-O2", "0"))
	if again := sums(compute("again", string(text), "-O0", "0")); !slices.Equal(good, again) {
		t.Errorf("without optimisation: %v, not %v", again, good)
	}
	if other := sums(compute("steps", string(text), "-O2", "0", "2048")); other[0] == good[0] || other[1] == good[1] || other[2] == good[2] {
		t.Errorf("other steps: %v", other)
	}
	if bad := sums(compute("bad", broken, "-O2", "0")); bad[0] == good[0] || bad[1] != good[1] || bad[2] != good[2] {
		t.Errorf("one bit of one thread's 500th step: %v, not %v", bad, good)
	}
}
