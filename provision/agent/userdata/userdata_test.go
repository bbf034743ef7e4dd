// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// system is a folder with a script and a boot id, and a runner that runs the script of that
// folder for real.
func system(t *testing.T, script string) (string, Runner) {
	t.Helper()
	dir := t.TempDir()
	syscall.ForkLock.RLock() // a child that has the file open for writing would keep it from being run
	defer syscall.ForkLock.RUnlock()
	for name, text := range map[string]string{userdata.ScriptFile: script, "proc/sys/kernel/random/boot_id": "b1\n"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir, Runner{Root: func() (rootfs.Root, error) { return rootfs.Open(dir) }, Clock: clock.Wall{},
		Run: func(ctx context.Context, path string, out io.Writer) (int, error) {
			return Command(ctx, filepath.Join(dir, path), out)
		}}
}

func recordOf(t *testing.T, dir string) (r userdata.Record) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, userdata.RecordFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		exit         int
		output, err  string
	}{
		{"well", "#!/bin/sh\necho out; echo err >&2; echo $HOME $PATH\n", 0, "out\nerr\n/root /usr/local/sbin:", ""},
		{"fails", "#!/bin/sh\necho before\nexit 7\n", 7, "before\n", ""},
		{"killed", "#!/bin/sh\nkill -9 $$\n", 137, "", ""},
		{"no interpreter", "#!/nowhere/sh\n", 0, "", "no such file"},
		{"much", "#!/bin/sh\ni=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done\n", 0, "line 2999\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, r := system(t, c.script)
			rec, err := r.Once(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			kept := recordOf(t, dir)
			if kept != rec {
				t.Errorf("kept %+v, want %+v", kept, rec)
			}
			if rec.Exit != c.exit || !strings.Contains(rec.Output, c.output) || (c.err == "") != (rec.Error == "") || !strings.Contains(rec.Error, c.err) || len(rec.Output) > mostOutput+10 {
				t.Errorf("%+v", rec)
			}
			if rec.Ended.Before(rec.Began) || rec.Boot != "b1" || rec.Digest != userdata.Digest(c.script) {
				t.Errorf("%+v", rec)
			}
			if (rec.Status() == 0) != (c.exit == 0 && c.err == "") {
				t.Errorf("status %d", rec.Status())
			}
			if _, err := r.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "begun before") {
				t.Errorf("run twice: %v", err)
			}
		})
	}
}

// TestShutDown: a script that a shutdown ends is recorded so, and is not run again.
func TestShutDown(t *testing.T) {
	t.Parallel()
	dir, r := system(t, "#!/bin/sh\ntouch \"$(dirname \"$0\")/began\"\nsleep 60\n")
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for !rootfsHas(dir, "etc/ironrail/began") && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		stop()
	}()
	if _, err := r.Once(ctx); err != nil {
		t.Fatal(err)
	}
	if rec := recordOf(t, dir); rec.Error != "the system was shut down while it ran" || rec.Exit != 128+15 {
		t.Errorf("%+v", rec)
	}
	if state, why := userdata.JudgeScript(content(t, dir), "b2"); state != userdata.Failed {
		t.Errorf("judged %d %s", state, why)
	}
}

func rootfsHas(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func content(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, userdata.RecordFile))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestHangs: a script that does not end is ended after half an hour, and recorded so.
func TestHangs(t *testing.T) {
	t.Parallel()
	dir, r := system(t, "#!/bin/sh\n")
	synctest.Test(t, func(t *testing.T) {
		r.Run = func(ctx context.Context, _ string, out io.Writer) (int, error) {
			_, _ = io.WriteString(out, "waiting")
			<-ctx.Done()
			return 143, nil
		}
		rec, err := r.Once(t.Context())
		if err != nil || rec.Error != "it took longer than 30m0s and was ended" || rec.Ended.Sub(rec.Began) != userdata.Limit || rec.Output != "waiting" {
			t.Errorf("%+v, %v", rec, err)
		}
	})
	if rec := recordOf(t, dir); rec.Ended.IsZero() {
		t.Errorf("%+v", rec)
	}
}
