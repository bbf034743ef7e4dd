// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab"
)

// try runs a command line in this process.
func try(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &cli{stdout: &out, stderr: &errs, getenv: func(string) string { return "" }, self: "/bin/ironrail-lab"}
	code = c.main(t.Context(), args)
	return code, out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	none := t.TempDir()
	tests := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing", nil, exitUsage, "usage: ironrail-lab COMMAND"},
		{"help", []string{"help"}, exitDone, "usage: ironrail-lab COMMAND"},
		{"help of a command", []string{"up", "-h"}, exitDone, "-machines"},
		{"unknown command", []string{"dance"}, exitUsage, `"dance" is not a command`},
		{"unknown flag", []string{"status", "--fast"}, exitUsage, "fast"},
		{"a word too many", []string{"status", "now"}, exitUsage, `want 0 words beside the flags, got ["now"]`},
		{"no lab", []string{"status", "--dir", none}, exitFailed, "no lab in " + none},
		{"no lab to end", []string{"down", "--dir", none, "--name", "labnone"}, exitFailed, "hint: "},
		{"exec without a command", []string{"exec", "--dir", none}, exitUsage, "no command"},
		{"fault without a name", []string{"fault", "--machine", "n1"}, exitUsage, "want 1 words"},
		{"fault without a rate", []string{"fault", "slow-rail", "--rate", "fast", "--dir", none}, exitFailed, `rate "fast"`},
		{"console without a machine", []string{"console"}, exitUsage, "want 1 words"},
		{"chassis without a question", []string{"chassis", "/x"}, exitUsage, "want SOCKET"},
		{"chassis without a supervisor", []string{"chassis", none + "/s", "n1", "get", "power"}, exitFailed, "supervisor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := try(t, tt.args...)
			if code != tt.code || !strings.Contains(errs, tt.says) || out != "" {
				t.Errorf("exit %d, want %d; stderr %q, want %q in it; stdout %q", code, tt.code, errs, tt.says, out)
			}
		})
	}
}

func TestInterruptedExitCode(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &cli{stdout: io.Discard, stderr: io.Discard}
	if code := c.report(ctx, context.Canceled); code != exitInterrupted {
		t.Errorf("exit %d, want %d", code, exitInterrupted)
	}
}

func TestParseMixesFlagsAndWords(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"n1", "--dir", "d"}, {"--dir", "d", "n1"}, {"--dir=d", "n1"}} {
		f := flag.NewFlagSet("x", flag.ContinueOnError)
		dir := dirFlag(f)
		words, err := parseFlags(f, args, 1)
		if err != nil || *dir != "d" || !slices.Equal(words, []string{"n1"}) {
			t.Errorf("%q: dir %q, words %q, error %v", args, *dir, words, err)
		}
	}
}

func TestMissingPackages(t *testing.T) {
	t.Parallel()
	installed := parseDpkg("openipmi\tinstalled\nipmitool\tconfig-files\n\nbroken\n")
	missing := lackingPackages([]lab.Package{{Name: "openipmi"}, {Name: "ipmitool"}, {Name: "ovmf"}}, installed)
	if got, want := strings.Join(aptLine(missing), " "), "install --yes --no-install-recommends ipmitool ovmf"; got != want {
		t.Errorf("apt-get %s, want %s", got, want)
	}
	only, err := wantedPackages(false)
	if err != nil {
		t.Fatal(err)
	}
	all, err := wantedPackages(true)
	if err != nil || len(only) >= len(all) || slices.ContainsFunc(only, func(p lab.Package) bool { return p.Use != lab.Lab }) {
		t.Errorf("%d packages for the lab, %d in all, error %v", len(only), len(all), err)
	}
}

func TestConsoleIsEscaped(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	in := "a\x1b[2Jb\r\nc\td\b\x07é"
	if n, err := (&escaper{w: &out}).Write([]byte(in)); err != nil || n != len(in) {
		t.Fatalf("wrote %d, error %v", n, err)
	}
	if got, want := out.String(), "a\\x1b[2Jb\nc\td\\x07\\xc3\\xa9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestChildrenGetNoSecrets(t *testing.T) {
	t.Parallel()
	got := childEnv([]string{"PATH=/bin", "LAB_BMC_PASSWORD=x", "IPMI_PASSWORD=x", "API_TOKEN=x", "A=PASSWORD"})
	if want := []string{"PATH=/bin", "A=PASSWORD"}; !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
}
