// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// wrap puts a text before every line, which may have a %d for its number.
func wrap(text, prefix string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		p := prefix
		if strings.Contains(prefix, "%") {
			p = fmt.Sprintf(prefix, i+1)
		}
		lines[i] = p + line
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestWrapped: an output is the same within a log of any kind.
func TestWrapped(t *testing.T) {
	t.Parallel()
	prefixes := []string{
		"2026-03-04T05:06:07.123456789Z stdout F ", "2026-03-04 05:06:07,123 INFO     ", "run-1.log:",
		"Mar  4 05:06:07 n1 bash[1234]: ", "[2026-03-04 05:06:07] ", "2026/03/04 05:06:07 ", "2026-03-04 05:06:07 | INFO | ", "2026-03-04 05:06:07,123 - INFO - ",
		"05:06:07 ", "[05:06:07.123] ", "launcher-x7k2p main ", "[n1] ", "(Worker pid=1019, ip=10.77.0.1) ", "| ", "// ", "+ ", "%d:", "%4d  ", "<p>", "test output: ",
	}
	for _, name := range []string{"perftest.write.txt", "nccl-tests.two-nodes.txt", "ibstat.txt"} {
		if name != "perftest.write.txt" { // the others with a few: each is read anew
			prefixes = prefixes[:3]
		}
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := Read("f", data)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		for _, prefix := range prefixes {
			got, err := Read("f", []byte(wrap(string(data), prefix)))
			if err != nil {
				t.Errorf("%s after %q: %v", name, prefix, err)
				continue
			}
			if b, _ := json.Marshal(got); string(b) != string(want) {
				t.Errorf("%s after %q: got %s, want %s", name, prefix, b, want)
			}
		}
	}
}

// TestMessages: Docker and journalctl write each line of a program as JSON.
func TestMessages(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/perftest.write.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"log", "MESSAGE"} {
		var lines []string
		for line := range strings.Lines(string(data)) {
			b, err := json.Marshal(map[string]string{key: line, "stream": "stdout"})
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(b))
		}
		got, err := Read("f", []byte(strings.Join(lines, "\n")))
		if err != nil || got.Kind != "perftest" || len(got.Problems) != 0 {
			t.Errorf("%s: %v, %s, %v", key, err, got.Kind, got.Problems)
		}
	}
}

// TestNotWrapped: what a log puts before lines makes no output of what is none, and
// the lines of two nodes are not one node's.
func TestNotWrapped(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a log of a service": wrap(strings.Repeat("a request was served\nthe cache has 12 entries\n", 5), "2026-03-04 05:06:07 INFO "),
		"prose":              strings.Repeat("It was a day as any other, and the cluster was quiet.\n", 8),
		"numbers":            strings.Repeat("12 13 14 15 16\n", 8),
	} {
		if r, err := Read("f", []byte(text)); err == nil {
			t.Errorf("%s is read as %s", name, r.Kind)
		}
	}
	data, err := os.ReadFile("testdata/perftest.write.txt")
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(wrap(string(data), "[n1] "), "\n"), strings.Split(wrap(string(data), "[n2] "), "\n")
	var mixed []string
	for i := range a {
		mixed = append(mixed, a[i], b[i])
	}
	if _, err := Read("f", []byte(strings.Join(mixed, "\n"))); err == nil || !regexp.MustCompile(`lines of 2 nodes are mixed`).MatchString(err.Error()) {
		t.Errorf("two nodes are read as one: %v", err)
	}
}
