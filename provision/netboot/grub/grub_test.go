// SPDX-License-Identifier: Apache-2.0

package grub

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

var (
	root80   = netip.MustParseAddrPort("10.77.0.2:80")
	root8080 = netip.MustParseAddrPort("10.77.0.2:8080")
)

func attempt(change func(*boot.Attempt)) boot.Attempt {
	a := boot.Attempt{ID: "n1-00ff", Node: "n1", Kernel: "/boot/n1-00ff/vmlinuz", Initrds: []string{"/boot/n1-00ff/initrd"}, Args: []string{"panic=60", "console=ttyAMA0,115200"}}
	change(&a)
	return a
}

func TestBootConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*boot.Attempt)
		want   string // in the configuration; "": it is refused
	}{
		"plain":             {func(*boot.Attempt) {}, "if linux (http,10.77.0.2)/boot/n1-00ff/vmlinuz 'panic=60' 'console=ttyAMA0,115200'; then\n    if initrd (http,10.77.0.2)/boot/n1-00ff/initrd; then\n      boot\n    fi\n  fi\n"},
		"dollar and braces": {func(a *boot.Attempt) { a.Args = []string{"x=${y};reboot"} }, " 'x=${y};reboot'; then\n"},
		"quote":             {func(a *boot.Attempt) { a.Args = []string{"x='y"} }, ""},
		"space":             {func(a *boot.Attempt) { a.Args = []string{"x y"} }, ""},
		"new line":          {func(a *boot.Attempt) { a.Args = []string{"x\ny"} }, ""},
		"name":              {func(a *boot.Attempt) { a.ID = "n1;reboot" }, ""},
		"path":              {func(a *boot.Attempt) { a.Kernel = "/boot/$x" }, ""},
		"initrd":            {func(a *boot.Attempt) { a.Initrds = []string{"/a b"} }, ""},
		"too long": {func(a *boot.Attempt) {
			a.Args = strings.Split(strings.Repeat(strings.Repeat("x", 1000)+" ", 16), " ")[:16]
		}, ""},
		"node with a quote": {func(a *boot.Attempt) { a.Node = "n'; reboot" }, "echo 'ironrail: node n?; reboot, boot attempt n1-00ff'\n"},
	} {
		got, err := BootConfig(attempt(c.change), root80)
		switch {
		case c.want == "" && errkind.Of(err) != errkind.Refused:
			t.Errorf("%s: got %q, %v, want a refusal", name, got, err)
		case c.want != "" && (err != nil || !strings.Contains(got, c.want)):
			t.Errorf("%s: got %v\n%s\nwant %s", name, err, got, c.want)
		}
	}
	if got := ChainConfig(root8080); !strings.Contains(got, "\n  configfile (http,10.77.0.2:8080)/grub/grub.cfg\n") {
		t.Errorf("with a port: %s", got)
	}
}

// TestPeerScriptsAreGRUBs: GRUB's own parser takes every configuration.
func TestPeerScriptsAreGRUBs(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "grub-script-check")
	booted, err := BootConfig(attempt(func(a *boot.Attempt) { a.Args = append(a.Args, "x=${y};&|<>\"`\\") }), root8080)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"boot": booted, "chain": ChainConfig(root80), "disk": DiskConfig("n'1"), "refusal": RefusalConfig("because of 'x' and $y; \"z\"\n\x1b[2J{")} {
		file := filepath.Join(t.TempDir(), "grub.cfg")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "grub-script-check", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", name, err, out, text)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.cfg")
	if err := os.WriteFile(bad, []byte("if linux x; then\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if exec.CommandContext(t.Context(), "grub-script-check", bad).Run() == nil {
		t.Error("grub-script-check takes anything")
	}
}
