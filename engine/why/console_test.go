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
		"[    9.8] Kernel panic - not syncing: Fatal machine check on current CPU":              "machine check",
		"[    9.8] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00007f00":     "first program",
		"[   12.1] mce: [Hardware Error]: Machine check events logged":                          "machine check",
		"[   12.1] mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: be00000000800400":     "machine check",
		"[   12.1] {1}[Hardware Error]: event severity: fatal":                                  "fatal error of the hardware",
		"Verification failed: (0x1A) Security Violation":                                        "not trusted by the firmware",
		"error: bad shim signature.":                                                            "does not trust its signature",
		"error: verification requested but nobody cares; prohibited by secure boot policy":      "GRUB was to load",
		"[   30.2] Loading of unsigned module is rejected":                                      "not signed",
		"[   30.2] Loading of module with unavailable key is rejected":                          "does not trust",
		"[   31.7] NVRM: Xid (PCI:0000:1b:00): 79, pid=1122, GPU has fallen off the bus.":       "Xid 79",
		"[   31.7] NVRM: Xid (PCI:0000:1b:00): 119, Timeout waiting for RPC from GSP0!":         "Xid 119",
		"[   31.7] NVRM: Xid (PCI:0000:1b:00): 48, pid=9, DBE (double bit error)":               "error of a GPU",
		"PXE-E16: No valid offer received.":                                                     "no DHCP server made an offer",
		"PXE-E12: Could not detect network connection.":                                         "no link",
		"PXE-E22: Client received ICMP error from server.":                                      "port is closed",
		"PXE-E23: Client received TFTP error from server.":                                      "not got the file",
		"PXE-T01: File not found":                                                               "not got the file",
		"PXE-E32: TFTP open timeout":                                                            "over TFTP",
		"PXE-E52: proxyDHCP offers were received. No DHCP offers were received.":                "no DHCP server did",
		"PXE-E61: Media test failure, check cable":                                              "no link",
		"  No configuration methods succeeded (https://ipxe.org/040ee119)":                      "got no address",
		"net0: PXE boot, Xid of the DHCP request 0x79":                                          "",
		"PXE-M0F: Exiting Intel Boot Agent.":                                                    "",
		"module verification failed: signature and/or required key missing - tainting kernel":   "",
		"No bootable device.":              "nothing to boot from",
		"DIMM A1: Memory training failure": "memory",
		"Memory training ... done":         "",
		"Welcome to Linux":                 "",
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
