// SPDX-License-Identifier: Apache-2.0

package ipxe

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

var update = flag.Bool("update", false, "write the golden files anew")

func attempt() boot.Attempt {
	return boot.Attempt{ID: "n1-7f3a", Node: "n1", Kernel: "/boot/n1-7f3a/vmlinuz", Initrds: []string{"/boot/n1-7f3a/initrd"},
		Args: []string{"console=ttyS0,115200", "ip=dhcp", "ironrail.controller=https://10.77.0.2:8443/", "quiet"}}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	two := attempt()
	two.Initrds = append(two.Initrds, "/boot/n1-7f3a/node.cpio")
	none := boot.Attempt{ID: "a", Node: "n1", Kernel: "/k"}
	script := func(a boot.Attempt) string {
		s, err := BootScript(a, "http://10.77.0.2:80")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	tests := []struct{ name, got string }{
		{"boot", script(attempt())},
		{"boot-two-initrds", script(two)},
		{"boot-kernel-only", script(none)},
		{"disk", DiskScript("n1")},
		{"refusal", RefusalScript("MAC 02:00:00:00:00:01 is not one of node n1, which has address 10.77.0.11")},
		{"refusal-hostile", RefusalScript("x\n${boot} || shell && `id`; \x1b[2J #!ipxe\u00e9 \"q\" \\n" + strings.Repeat("a", 400))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", tt.name+".ipxe")
			if *update {
				if err := os.WriteFile(path, []byte(tt.got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if tt.got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", tt.got, want)
			}
		})
	}
}

func TestBootRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		base string
		edit func(*boot.Attempt)
	}{
		{"newline in an argument", "", func(a *boot.Attempt) { a.Args = []string{"a\nshell"} }},
		{"space in an argument", "", func(a *boot.Attempt) { a.Args = []string{"a b"} }},
		{"expansion in an argument", "", func(a *boot.Attempt) { a.Args = []string{"a=${net0/mac}"} }},
		{"operator ||", "", func(a *boot.Attempt) { a.Args = []string{"||"} }},
		{"operator &&", "", func(a *boot.Attempt) { a.Args = []string{"&&"} }},
		{"separator", "", func(a *boot.Attempt) { a.Args = []string{";"} }},
		{"comment", "", func(a *boot.Attempt) { a.Args = []string{"#x"} }},
		{"empty argument", "", func(a *boot.Attempt) { a.Args = []string{""} }},
		{"not ASCII", "", func(a *boot.Attempt) { a.Args = []string{"é"} }},
		{"empty ID", "", func(a *boot.Attempt) { a.ID = "" }},
		{"relative kernel", "", func(a *boot.Attempt) { a.Kernel = "vmlinuz" }},
		{"kernel with a query", "", func(a *boot.Attempt) { a.Kernel = "/k?x=${ip}" }},
		{"initrd with a space", "", func(a *boot.Attempt) { a.Initrds = []string{"/a b"} }},
		{"root is no URL", "ftp://x", func(*boot.Attempt) {}},
		{"too long", "", func(a *boot.Attempt) {
			for range 100 {
				a.Args = append(a.Args, strings.Repeat("x", 1000))
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := attempt()
			tt.edit(&a)
			if tt.base == "" {
				tt.base = "http://10.77.0.2:80"
			}
			if s, err := BootScript(a, tt.base); errkind.Of(err) != errkind.Refused || s != "" {
				t.Errorf("got %v and script:\n%s", err, s)
			}
		})
	}
}

// FuzzBoot: whatever is accepted keeps the script's lines and words.
func FuzzBoot(f *testing.F) {
	f.Add("n1", "/boot/a/vmlinuz", "console=ttyS0", "reason")
	f.Fuzz(func(t *testing.T, node, kernel, arg, reason string) {
		s, err := BootScript(boot.Attempt{ID: "a", Node: node, Kernel: kernel, Args: []string{arg}}, "http://10.0.0.2")
		if err == nil && (strings.Count(s, "\n") != 17 || strings.Count(s, "${") != 2 || strings.Count(s, " || ") != 2) {
			t.Errorf("changed shape:\n%s", s)
		}
		if s := RefusalScript(reason); strings.Count(s, "\n") != 5 || strings.ContainsAny(s, "$|&;\\") {
			t.Errorf("changed shape:\n%s", s)
		}
		if s := DiskScript(node); strings.Count(s, "\n") != 6 {
			t.Errorf("changed shape:\n%s", s)
		}
	})
}
