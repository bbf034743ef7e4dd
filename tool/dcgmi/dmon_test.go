// SPDX-License-Identifier: Apache-2.0

package dcgmi

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

const dmon = `#Entity   GPUTL        POWER        TOTEC           XIDER
ID                     W            mJ
GPU 0     100          688.214      91827364        N/A
GPU 1     0            74.020       1827364         79
#Entity   GPUTL        POWER        TOTEC           XIDER
ID                     W            mJ
GPU 0     99           690.100      91834251        N/A
`

func TestMonitor(t *testing.T) {
	t.Parallel()
	if matchFormat([]byte(dmon)) == 0 {
		t.Error("not recognised")
	}
	c, p, err := Parse([]byte(dmon))
	if err != nil || len(p) != 0 || c.Command != "dmon" || len(c.Samples.Rows) != 3 {
		t.Fatalf("%v, %v, %+v", err, p, c)
	}
	if f := c.Samples.Fields; len(f) != 4 || f[0] != (Field{"GPUTL", ""}) || f[1] != (Field{"POWER", "W"}) || f[2] != (Field{"TOTEC", "mJ"}) {
		t.Errorf("fields %+v", f)
	}
	if r := c.Samples.Rows[1]; r.Entity != "GPU 1" || r.Values["POWER"] != 74.02 || r.Values["XIDER"] != 79.0 || c.Samples.Rows[0].Values["XIDER"] != nil {
		t.Errorf("rows %+v", c.Samples.Rows)
	}
	if got, want := c.Summary()[1], "GPU 0, GPUTL 99 to 100, POWER 688.214 to 690.1 W, TOTEC 9.1827364e+07 to 9.1834251e+07 mJ"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMonitorOfEntities: an entity without a field has a blank cell, links have
// names of several words, and so have values.
func TestMonitorOfEntities(t *testing.T) {
	t.Parallel()
	in := "#Entity        NVLTX   GPUTL   DVNAM               POWER   \n" +
		"ID                                                W       \n" +
		"GPU 0 LINK 17  12                                         \n" +
		"GPU 0                  77      NVIDIA H100 80GB..  700.1   \n" +
		"CPU Core 3             3                                   \n"
	c, p, err := Parse([]byte(in))
	if err != nil || len(p) != 0 || len(c.Samples.Rows) != 3 {
		t.Fatalf("%v, %v, %+v", err, p, c.Samples)
	}
	for i, want := range []Sample{
		{"GPU 0 LINK 17", map[string]any{"NVLTX": 12.0, "GPUTL": nil, "DVNAM": nil, "POWER": nil}},
		{"GPU 0", map[string]any{"NVLTX": nil, "GPUTL": 77.0, "DVNAM": "NVIDIA H100 80GB..", "POWER": 700.1}},
		{"CPU Core 3", map[string]any{"NVLTX": nil, "GPUTL": 3.0, "DVNAM": nil, "POWER": nil}},
	} {
		if got := c.Samples.Rows[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestMonitorProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     tool.ProblemKind
	}{
		{"torn", strings.TrimSuffix(dmon, "91834251        N/A\n"), tool.Truncated},
		{"no row", "# Entity  POWER\n      Id      W\n", tool.Missing},
		{"too many", dmon + "GPU 1     1 2 3 4 5\n", tool.Inconsistent},
	} {
		if _, p, err := Parse([]byte(c.in)); err != nil || len(p) != 1 || p[0].Kind != c.want {
			t.Errorf("%s: %v, %v, want one %s", c.name, err, p, c.want)
		}
	}
}
