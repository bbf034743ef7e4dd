// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var got []string
	each := func(line string) { got = append(got, line) }
	if err := (Runner{Env: []string{"GREETING=hello"}}).Run(t.Context(), each, "sh", "-c", `echo "$GREETING $LC_ALL"; echo; echo two >&2`); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != "hello C.UTF-8" || got[1] != "two" {
		t.Errorf("lines %q", got)
	}
	err := Runner{}.Run(t.Context(), nil, "sh", "-c", "seq 100; echo broken >&2; exit 3")
	if err == nil || !strings.HasSuffix(err.Error(), "broken") || !strings.Contains(err.Error(), "exit status 3") || strings.Contains(err.Error(), "\n50\n") {
		t.Errorf("got %v, want the last lines", err)
	}
	if err := (Runner{}).Run(t.Context(), nil, "ironrail-no-such-tool"); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("got %v, want unsupported", err)
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	b, err := Runner{}.Output(t.Context(), "sh", "-c", "echo out; echo talk >&2")
	if err != nil || string(b) != "out\n" {
		t.Errorf("got %q, %v", b, err)
	}
}

// A tool and its children are told to stop, and may clean up.
func TestCancelReachesChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := func(line string) {
		if line == "started" {
			cancel()
		}
	}
	script := `trap 'echo cleaned >clean; exit 1' TERM; sh -c 'echo $$ >child; echo started; exec sleep 3600' & wait`
	err := Runner{Dir: dir}.Run(ctx, started, "sh", "-c", script)
	if errkind.Of(err) != errkind.Interrupted {
		t.Errorf("got %v, want interrupted", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "clean")); err != nil {
		t.Errorf("the tool was not given time to clean up: %v", err)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	for hang := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(hang) {
			t.Fatalf("a child still runs: %s", stat)
		}
	}
}
