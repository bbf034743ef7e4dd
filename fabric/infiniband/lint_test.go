// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
)

// TestLint: each hazard of partitions.conf is a problem at its line; what is right
// is none.
func TestLint(t *testing.T) {
	t.Parallel()
	const head = "Default=0x7fff, ipoib : ALL=limited, SELF=full ;\n"
	present := map[addr.GUID]bool{0x11: true, 0x12: true}
	tests := []struct {
		name, text, want string // want: empty for none
		line             int
	}{
		{"right", head + "a=0x0001, ipoib, mtu=5, defmember=full : 0x11=full, 0x12 ; # n1\n", "", 0},
		{"several lines", head + "a=0x0001 :\n  0x11=full,\n  0x12=both\n;\n", "", 0},
		{"decimal GUID", head + "a=0x0001 : 17=full ;", "", 0},
		{"no isolation asked for", "Default=0x7fff, ipoib : ALL=full ;", "", 0},
		{"no semicolon", head + "a=0x0001 : 0x11=full\n", "semicolon is missing", 2},
		{"no colon", head + "a=0x0001, 0x11=full ;\n", "no flag of a partition", 2},
		{"bad GUID", head + "a=0x0001 : 0x11=full, 0xzz=full ;\n", "no port GUID", 2},
		{"GUID without 0x", head + "a=0x0001 :\n 946dae0300000011=full ;\n", "no port GUID", 3},
		{"unknown membership", head + "a=0x0001 : 0x11=bogus ;\n", "would take it for limited", 2},
		{"unknown default membership", head + "a=0x0001, defmember=ful : 0x11 ;\n", "would take it for limited", 2},
		{"two names", head + "a=0x8001 : 0x11=full ;\nb=0x0001 : 0x12=full ;\n", "one partition of both", 3},
		{"no P_Key", head + "a : 0x11=full ;\n", "make one up", 2},
		{"P_Key 0x8000", head + "a=0x8000 : 0x11=full ;\n", "make one up", 2},
		{"absent GUID", head + "a=0x0001 : 0x13=full ;\n", "not on the fabric", 2},
		{"two memberships", head + "a=0x0001 : 0x11=full ;\na=0x0001 : 0x11=limited ;\n", "another membership in line 2", 3},
		{"all are full", "Default=0x7fff : ALL=full ;\na=0x0001 : 0x11=full ;\n", "isolate nobody", 1},
		{"all of the nodes are full", "Default=0x7fff : ALL=limited, ALL_CAS=full ;\na=0x0001 : 0x11=full ;\n", "isolate nobody", 1},
		{"no default", "a=0x0001 : 0x11=full ;\n", "0x7fff is not defined", 0},
		{"long line", head + "a=0x0001 : " + strings.Repeat("0x11=full, ", 400) + "0x12 ;\n", "opensm reads 4094", 2},
		{"unknown flag", head + "a=0x0001, ipoip : 0x11=full ;\n", `"ipoip" is no flag`, 2},
		{"bad number", head + "a=0x0001, mtu=big : 0x11=full ;\n", "mtu is a number", 2},
		{"semicolon alone", head + ";\n", "ends nothing", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := lintPartitions([]byte(tt.text), present)
			if tt.want == "" {
				if len(got) > 0 {
					t.Errorf("%v", got)
				}
				return
			}
			if len(got) == 0 || got[0].Line != tt.line || !strings.Contains(got[0].Text, tt.want) {
				t.Errorf("got %v, want %q in line %d", got, tt.want, tt.line)
			}
		})
	}
}

// FuzzPartitions: any bytes are read without a panic, and every problem is in a line.
func FuzzPartitions(f *testing.F) {
	f.Add([]byte("Default=0x7fff : ALL=limited, SELF=full ;\na=0x1, ipoib : 0x11=full ;"))
	f.Add([]byte(";:=,;#"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := strings.Count(string(text), "\n") + 1
		for _, p := range lintPartitions(text, nil) {
			if p.Line < 0 || p.Line > lines || p.Text == "" {
				t.Errorf("%+v of %d lines", p, lines)
			}
		}
	})
}

// TestReadPKeys: what smpquery prints, and what is cut off.
func TestReadPKeys(t *testing.T) {
	t.Parallel()
	const text = "   0: 0x7fff 0x8001 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000\n   8: 0x0003 0x0000\n16 pkeys capacity for this port\n"
	keys, err := parsePKeys([]byte(text))
	if err != nil || keyText(keys) != "0x0003 0x7fff 0x8001" {
		t.Errorf("%v, %v", keyText(keys), err)
	}
	if _, err := parsePKeys([]byte(text[:60])); err == nil {
		t.Error("a table that is cut off is a table")
	}
	if _, err := parsePKeys([]byte("   0: 0x7fff zz\n16 pkeys capacity for this port\n")); err == nil {
		t.Error("zz is a P_Key")
	}
}
