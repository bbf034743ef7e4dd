// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/why"
)

func TestScreen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"lines", "a\r\nb\n\n  \nc", []string{"a", "b", "c"}},
		{"colours", "\x1b[1;31mred\x1b[0m text\r\n", []string{"red text"}},
		{"a menu", "\x1b[2J\x1b[01;01HBoot\x1b[02;01HSetup", []string{"Boot", "Setup"}},
		{"written over", "10%\r20%\r\n", []string{"10%", "20%"}},
		{"controls", "a\x07\x00b\tc\n", []string{"ab c"}},
		{"no end", strings.Repeat("x", 1500), []string{strings.Repeat("x", 1024), strings.Repeat("x", 476)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			s := why.Screen{Line: func(l string) { got = append(got, l) }}
			for i := range len(tt.in) { // sequences come in pieces
				_, _ = s.Write([]byte{tt.in[i]})
			}
			s.Flush()
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"[ 1.2] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)": "no root file system",
		"[ 1.2] Kernel panic - not syncing: Fatal exception":                                    "the kernel stopped",
		"PXE-E51: No DHCP or proxyDHCP offers were received.":                                   "no DHCP server",
		"PXE-E53: No boot filename received":                                                    "named no boot file",
		"PXE-E18: Server response timeout.":                                                     "did not answer in time",
		"No bootable device.":                                                                   "nothing to boot from",
		"DIMM A1: Memory training failure":                                                      "memory",
		"Memory training ... done":                                                              "",
		"Welcome to Linux":                                                                      "",
	} {
		s, ok := why.ExplainConsoleLine(line)
		if ok != (want != "") || !strings.Contains(s.Cause, want) || ok && (s.Action == "" || s.Source == "") {
			t.Errorf("%s: %v, want %q", line, s, want)
		}
	}
}

func FuzzScreen(f *testing.F) {
	f.Add([]byte("\x1b[2J\x1b[1;1Ha\r\nb\x1b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := why.Screen{Line: func(l string) {
			if l == "" || len(l) > 1024 || strings.ContainsAny(l, "\x1b\n\r\x00") {
				t.Errorf("line %q", l)
			}
		}}
		_, _ = s.Write(b)
		s.Flush()
	})
}
