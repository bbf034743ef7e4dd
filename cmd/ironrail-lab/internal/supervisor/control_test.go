// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// control serves a supervisor of one fake machine and returns its socket.
func control(t *testing.T, b *bench) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ctl") // short: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	lab := Lab{Name: "x", Dir: dir}
	l, err := listenSocket(lab.Socket())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Supervisor{lab: lab, slog: slog.New(slog.DiscardHandler), machines: []*machine{b.machine}, stop: cancel, ready: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		var conns sync.WaitGroup
		s.control(ctx, l, &conns)
		conns.Wait()
	})
	context.AfterFunc(ctx, func() { _ = l.Close() })
	t.Cleanup(func() { cancel(); all.Wait(); _ = os.RemoveAll(dir) })
	return lab.Socket()
}

func TestControl(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runs()
	socket := control(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ask := func(r Request) (Response, error) { return Call(ctx, socket, r) }
	if _, err := ask(Request{Op: OpChassis, Machine: "n1", Args: []string{"set", "power", "1"}}); err != nil {
		t.Fatal(err)
	}
	if res, err := ask(Request{Op: OpChassis, Machine: "n1", Args: []string{"get", "power"}}); err != nil || res.Text != "power:1\n" {
		t.Errorf("power %q, error %v", res.Text, err)
	}
	b.next().heard(t, "cont")
	if res, err := ask(Request{Op: OpStatus}); err != nil || len(res.Status.Machines) != 1 || !res.Status.Machines[0].Power || res.Status.Ready {
		t.Errorf("status %+v, error %v", res.Status, err)
	}
	for _, r := range []Request{{Op: "dance"}, {Op: OpChassis, Machine: "n7"}, {Op: OpFault}, {Op: OpFault, Fault: &FaultRequest{Name: "fire", Machine: "n1"}}} {
		if _, err := ask(r); err == nil || errkind.Of(err) == errkind.Internal {
			t.Errorf("%+v: error %v", r, err)
		}
	}
	if _, err := ask(Request{Op: OpStop}); err != nil {
		t.Error(err)
	}
}

func TestCallWithoutSupervisor(t *testing.T) {
	t.Parallel()
	_, err := Call(t.Context(), filepath.Join(t.TempDir(), "none"), Request{Op: OpStatus})
	if errkind.Of(err) != errkind.Unreachable || errkind.Action(err) == "" {
		t.Errorf("error %v", err)
	}
}

func TestLockIsExclusive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); errkind.Of(err) != errkind.Refused {
		t.Errorf("a second lock: %v", err)
	}
	release()
	again, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestForget(t *testing.T) {
	t.Parallel()
	for _, purge := range []bool{false, true} {
		lab := Lab{Name: "x", Dir: t.TempDir(), Machines: newBench(t).machines()}
		files := lab.FilesOf("n1")
		for _, name := range []string{files.Disk, filepath.Join(files.Dir, "bmc", "lan.conf"), filepath.Join(lab.Dir, "mine.txt"), filepath.Join(lab.Dir, "old", "disk.raw")} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := lab.Save(); err != nil {
			t.Fatal(err)
		}
		if WasLab(lab.Dir) {
			t.Error("a folder without lock and effects counts as a lab")
		}
		if err := lab.Forget(purge); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{
			files.Disk: !purge, filepath.Join(lab.Dir, "old", "disk.raw"): !purge, filepath.Join(lab.Dir, "mine.txt"): true,
			filepath.Join(files.Dir, "bmc", "lan.conf"): false, filepath.Join(lab.Dir, "lab.json"): false,
		} {
			if _, err := os.Stat(name); (err == nil) != want {
				t.Errorf("purge %v: %s is there: %v, want %v", purge, name, err == nil, want)
			}
		}
		if _, err := Load(lab.Dir); errkind.Of(err) != errkind.Refused {
			t.Errorf("a forgotten lab loads: %v", err)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	cmd := func(s float64, what string, changed bool) Effect {
		return Effect{Time: at(s), Machine: "n1", Kind: Command, What: what, Changed: changed}
	}
	tests := []struct {
		name    string
		effects []Effect
		cycles  int
	}{
		{"a cycle", []Effect{cmd(0, "power off", true), cmd(1, "power on", true)}, 1},
		{"off and, much later, on", []Effect{cmd(0, "power off", true), cmd(9, "power on", true)}, 0},
		{"a cycle of a machine that is off", []Effect{cmd(0, "power off", false), cmd(1, "power on", true)}, 0},
		{"two cycles", []Effect{cmd(0, "power off", true), cmd(1, "power on", true), cmd(5, "power off", true), cmd(6, "power on", true)}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := CountEffects(tt.effects)["n1"].Cycles; got != tt.cycles {
				t.Errorf("%d cycles, want %d", got, tt.cycles)
			}
		})
	}
}

func TestParseEffects(t *testing.T) {
	t.Parallel()
	line := `{"time":"2026-01-02T03:04:05Z","machine":"n1","kind":"start","boot":"net"}` + "\n"
	if es, err := parseEffects(strings.NewReader(line + line[:20])); err != nil || len(es) != 1 {
		t.Errorf("a torn last line: %d effects, error %v", len(es), err)
	}
	if _, err := parseEffects(strings.NewReader("{\n" + line)); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a broken line in the middle: %v", err)
	}
}

func TestSlowRailRequest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		factor int
		rate   string
		want   int
		ok     bool
	}{
		{10, "", 10_400, true}, {10, "8mbit", 8000, true}, {1, "", 0, false}, {0, "", 0, false}, {10, "fast", 0, false},
	}
	for _, tt := range tests {
		r, err := SlowRail(newBench(t).Machine, tt.factor, tt.rate)
		if int(r.Rate) != tt.want || (err == nil) != tt.ok {
			t.Errorf("factor %d, rate %q: %d kbit/s, error %v", tt.factor, tt.rate, r.Rate, err)
		}
	}
}

func FuzzParseEffects(f *testing.F) {
	f.Add(`{"machine":"n1","kind":"reset","by":"guest"}` + "\n")
	f.Fuzz(func(_ *testing.T, s string) {
		if es, err := parseEffects(strings.NewReader(s)); err == nil {
			CountEffects(es)
		}
	})
}
