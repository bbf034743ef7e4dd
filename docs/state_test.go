// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// statePage shows the commands about the state with what they print.
const statePage = "docs/state.md"

var (
	session = regexp.MustCompile("(?s)```\n(\\$ ironrail state .*?)```")
	moments = regexp.MustCompile(`\d{8}T\d{6}`)
	sizes   = regexp.MustCompile(`\d+ KiB`)
)

// oldState makes a folder with a state file that an ironrail of format 1 wrote.
func oldState(t *testing.T) string {
	t.Helper()
	f, err := os.Open(filepath.Join(top, "engine/state/testdata/format-1.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".ironrail"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(filepath.Join(dir, ".ironrail/state.db"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, z); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStatePageIsWhatIsPrinted types every command of the page, one after another, into one
// site, and compares what it prints; times and sizes aside.
func TestStatePageIsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir, page := oldState(t), read(t, statePage)
	n := 0
	got := session.ReplaceAllStringFunc(page, func(block string) string {
		n++
		var b strings.Builder
		for line := range strings.Lines(session.FindStringSubmatch(block)[1]) {
			if typed, ok := strings.CutPrefix(line, "$ ironrail "); ok {
				b.WriteString(line)
				b.WriteString(typeIn(t, bin, dir, strings.Fields(typed)))
			}
		}
		return "```\n" + b.String() + "```"
	})
	if n < 6 {
		t.Errorf("only %d sessions were found", n)
	}
	plain := func(s string) string { return sizes.ReplaceAllString(moments.ReplaceAllString(s, "TIME"), "SIZE") }
	if plain(got) == plain(page) {
		return
	}
	if *update {
		if err := os.WriteFile(filepath.Join(top, statePage), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is out of date: go test ./docs -update\n%s", statePage, firstDifference(plain(page), plain(got)))
}

// typeIn runs one command in a site's folder and returns all that it prints.
func typeIn(t *testing.T, bin, dir string, args []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, bin, args...)
	c.Dir, c.Env = dir, append(os.Environ(), "TZ=UTC")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("ironrail %v: %v", args, err)
	}
	return string(out)
}
