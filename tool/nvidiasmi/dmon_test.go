// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

const dmon = `# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk 
# Idx      W      C      C      %      %    MHz    MHz 
    0    631     63     57    100     10   2619   1980 
    1     74     31      -      0      0   2619    345 
# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk 
# Idx      W      C      C      %      %    MHz    MHz 
    0    640     64     58     99      9   2619   1965 
`

func TestParseMonitor(t *testing.T) {
	t.Parallel()
	m, p, err := ParseMonitor([]byte(dmon))
	if err != nil || len(p) != 0 || len(m.Rows) != 3 || len(m.Columns) != 8 {
		t.Fatalf("%v, %v, %+v", err, p, m)
	}
	if w, ok := m.Rows[2].Number("pwr"); !ok || w != 640 || m.Columns[1] != (Column{"pwr", "W"}) {
		t.Errorf("power %g, column %+v", w, m.Columns[1])
	}
	if v, ok := m.Rows[1].Number("mtemp"); ok {
		t.Errorf("a value that is not there is %g", v)
	}
	if got, want := m.Summary()[1], "GPU 0, pwr 631 to 640 W, gtemp 63 to 64 C, mtemp 57 to 58 C, sm 99 to 100 %, mem 9 to 10 %, mclk 2619 MHz, pclk 1965 to 1980 MHz"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMonitorForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, column string
		want             any
		problem          tool.ProblemKind
	}{
		{"processes", "# gpu         pid   type     sm    command \n# Idx           #    C/G      %    name \n    0       2056      C     97    python3 train.py\n", "command", "python3 train.py", ""},
		{"with times", "#Date       Time        gpu    pwr \n#YYYYMMDD   HH:MM:SS    Idx      W \n 20261120   09:15:00      3    702 \n", "pwr", 702.0, ""},
		{"a value that cannot be read", "# gpu    pwr \n# Idx      W \n    0    ERR! \n", "pwr", nil, tool.Failed},
		{"torn row", strings.TrimSuffix(dmon, "99      9   2619   1965 \n"), "pclk", nil, tool.Truncated},
		{"no row", "# gpu    pwr \n# Idx      W \n", "", nil, tool.Missing},
		{"not supported", "# gpu    pwr \n# Idx      W \n    0     10 \nNot supported on the device(s)\n", "pwr", 10.0, tool.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, p, err := ParseMonitor([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if c.problem == "" && len(p) > 0 || c.problem != "" && (len(p) != 1 || p[0].Kind != c.problem) {
				t.Errorf("problems %v, want %q", p, c.problem)
			}
			if c.column != "" {
				if got := m.Rows[len(m.Rows)-1][c.column]; got != c.want {
					t.Errorf("%s is %v, want %v", c.column, got, c.want)
				}
			}
		})
	}
	if n := isMonitor([]byte("# gpu is what we speak of\n")); n != 0 {
		t.Errorf("a comment is a heading by %d", n)
	}
}
