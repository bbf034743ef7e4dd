// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDesignOfTheGuide types what the guide's chapter on designing a site types,
// in its order, and holds what is printed to what is shown.
func TestDesignOfTheGuide(t *testing.T) {
	t.Parallel()
	bin, err := program()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	_, chapter, found := strings.Cut(read(t, "docs/guide.md"), "\n## Designing a site\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	dir, seen := t.TempDir(), 0
	for _, block := range blocks(chapter, "") {
		for _, s := range typedSteps(block) {
			seen++
			if name, isFile := strings.CutPrefix(s.command, "cat "); isFile {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(s.shown), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			c := exec.CommandContext(t.Context(), "sh", "-c", s.command)
			c.Dir, c.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(bin)+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, _ := c.CombinedOutput() // a finding has its exit code too
			if !s.matches(string(out)) {
				t.Errorf("$ %s\nprints\n%s\nthe guide shows\n%s", s.command, out, s.shown)
			}
		}
	}
	if !found || seen < 10 {
		t.Errorf("the chapter has %d commands", seen)
	}
}

// typedStep is a command line of the guide and what it shows of the output.
type typedStep struct{ command, shown string }

// typedSteps splits a block at its prompts; one without is not typed.
func typedSteps(block string) (out []typedStep) {
	for line := range strings.Lines(block) {
		switch command, prompt := strings.CutPrefix(line, "$ "); {
		case prompt:
			out = append(out, typedStep{command: strings.TrimSuffix(command, "\n")})
		case len(out) > 0:
			out[len(out)-1].shown += line
		}
	}
	return out
}

// What differs from run to run: times of the clock and of the rehearsal itself,
// sizes; and lines that the guide leaves out.
var (
	varies  = regexp.MustCompile(`(?m)^[0-9][0-9]:[0-9][0-9]:[0-9][0-9]|Rehearsed in [0-9.hms]+|[0-9]+kB|(Peak)?\s+memory [0-9]+ MiB`)
	elision = regexp.MustCompile(`(?m)^\[\.\.\.\]\n`)
)

// matches reports whether out is what is shown; [...] stands for any lines.
func (s typedStep) matches(out string) bool {
	if !strings.HasSuffix(out, "\n") && out != "" {
		out += "\n"
	}
	out, shown := varies.ReplaceAllString(out, "N"), varies.ReplaceAllString(s.shown, "N")
	parts := elision.Split(shown, -1)
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile(`\A` + strings.Join(parts, `(?s:(.*\n)?)`) + `\z`).MatchString(out)
}
