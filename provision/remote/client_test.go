// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// dial connects for the test.
func dial(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// sh makes a command of a shell script.
func sh(script string, args ...string) Command {
	return Command{Argv: append([]string{"/bin/sh", "-c", script, "sh"}, args...)}
}

func runs(t *testing.T, cfg Config) {
	c := dial(t, cfg)
	tests := []struct {
		name string
		cmd  Command
		want Result
	}{
		{name: "output", cmd: sh("echo out; echo err >&2"), want: Result{Stdout: []byte("out\n"), Stderr: []byte("err\n")}},
		{name: "status", cmd: sh("exit 7"), want: Result{Exit: 7}},
		{name: "not found", cmd: Command{Argv: []string{"/no/such/program"}}, want: Result{Exit: 127}},
		{name: "stdin", cmd: Command{Argv: []string{"cat"}, Stdin: strings.NewReader("in")}, want: Result{Stdout: []byte("in")}},
		{name: "stdin not read", cmd: Command{Argv: []string{"true"}, Stdin: strings.NewReader(strings.Repeat("x", 1<<22))}},
		{name: "bounded", cmd: Command{Argv: []string{"sh", "-c", "yes | head -c 3000000"}, MaxOutput: 4}, want: Result{Stdout: []byte("y\n\n[... 2999996 bytes left out ...]\ny\n"), Omitted: 2999996}},
		{name: "signal", cmd: sh("kill -KILL $$"), want: Result{Exit: -1, Signal: "KILL"}},
		{name: "quoting", cmd: Command{Argv: []string{"printf", "%s|", "a b", "it's", `"$HOME"`, "`id`", "\\", "*", "", "-n", "a\nb", "ü;&"}},
			want: Result{Stdout: []byte("a b|it's|\"$HOME\"|`id`|\\|*||-n|a\nb|ü;&|")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.Run(t.Context(), tt.cmd)
			if err != nil {
				t.Fatal(err)
			}
			if tt.name == "not found" {
				got.Stderr = nil // the shell's words differ
			}
			if string(got.Stdout) != string(tt.want.Stdout) || string(got.Stderr) != string(tt.want.Stderr) ||
				got.Exit != tt.want.Exit || got.Omitted != tt.want.Omitted ||
				got.Signal != tt.want.Signal {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestRunBadArgv(t *testing.T) {
	t.Parallel()
	c := dial(t, startNode(t).config())
	for _, argv := range [][]string{nil, {}, {""}, {"echo", "a\x00b"}} {
		if _, err := c.Run(t.Context(), Command{Argv: argv}); err == nil {
			t.Errorf("%q was run", argv)
		}
	}
}

// When the context ends, the program on the node ends too.
func runIsCancelled(t *testing.T, cfg Config) {
	c := dial(t, cfg)
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			if b, err := os.ReadFile(pidFile); err == nil && len(b) > 0 || t.Context().Err() != nil {
				cancel()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	start := time.Now()
	r, err := c.Run(ctx, sh(`echo started; sleep 600 & echo $! >"$1.t"; mv "$1.t" "$1"; wait`, pidFile))
	wg.Wait()
	if errkind.Of(err) != errkind.Interrupted || string(r.Stdout) != "started\n" || r.Exit != -1 {
		t.Errorf("got %+v, %v", r, err)
	}
	if spent := time.Since(start); spent > 5*time.Minute { // the program would have slept for ten
		t.Errorf("took %s", spent)
	}
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join("/proc", strings.TrimSpace(string(pid)))
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(gone); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("process %s still runs", pid)
		}
	}
	if r, err := c.Run(t.Context(), sh("echo ok")); err != nil || string(r.Stdout) != "ok\n" {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
}

func TestDialErrors(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	other := newSigner(t)
	with := func(f func(*Config)) Config {
		cfg := n.config()
		f(&cfg)
		return cfg
	}
	tests := []struct {
		name string
		cfg  Config
		kind errkind.Kind
		text string
	}{
		{"nothing listens", with(func(c *Config) { c.Addr = addrOf(closed) }), errkind.Unreachable, "connection refused"},
		{"silent", with(func(c *Config) { c.Addr = addrOf(silent); c.Timeout = 200 * time.Millisecond }), errkind.Unreachable, "no answer"},
		{"other client key", with(func(c *Config) { c.Signer = other }), errkind.Auth, "is refused"},
		{"other host key", with(func(c *Config) { c.HostKey = other.PublicKey() }), errkind.Mismatch, "host key changed"},
		{"no host key", with(func(c *Config) { c.HostKey = nil }), errkind.NotFound, "no host key"},
		{"no address", with(func(c *Config) { c.Addr = netip.AddrPort{} }), errkind.Invalid, "not complete"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Dial(t.Context(), tt.cfg)
			if err == nil || errkind.Of(err) != tt.kind || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v (%s), want %s and %q", err, errkind.Of(err), tt.kind, tt.text)
			}
			if errkind.Action(err) == "" && tt.name != "no address" {
				t.Errorf("%v has no next action", err)
			}
		})
	}
	_, err = Dial(t.Context(), with(func(c *Config) { c.HostKey = other.PublicKey() }))
	for _, key := range []string{fingerprint(n.host), fingerprint(other)} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("%q does not show %s", err, key)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, n.config()); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("cancelled: %v", err)
	}
}

// The client connects again after the node was rebooted, and finds out when
// another node came back.
func TestReboot(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := dial(t, n.config())
	for i := range 3 {
		if r, err := c.Run(t.Context(), sh("echo up")); err != nil || string(r.Stdout) != "up\n" {
			t.Fatalf("round %d: %+v, %v", i, r, err)
		}
		n.reboot()
	}
	if got := n.logins.Load(); got != 3 {
		t.Errorf("%d log-ins, want 3", got)
	}
	n.down()
	if _, err := c.Run(t.Context(), sh("echo up")); errkind.Of(err) != errkind.Unreachable {
		t.Errorf("while it is down: %v", err)
	}
	n.host = newSigner(t)
	n.up(n.addr.String())
	if _, err := c.Run(t.Context(), sh("echo up")); errkind.Of(err) != errkind.Mismatch {
		t.Errorf("with another host key: %v", err)
	}
}

// A connection that breaks while a command runs is an error, never a result, and
// the command is not run again.
func TestRebootDuringCommand(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := dial(t, n.config())
	file := filepath.Join(t.TempDir(), "ran")
	var wg sync.WaitGroup
	wg.Go(func() {
		for t.Context().Err() == nil {
			if b, err := os.ReadFile(file); err == nil && len(b) > 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		n.reboot()
	})
	_, err := c.Run(t.Context(), sh(`echo x >>"$1"; sleep 600`, file))
	wg.Wait()
	if errkind.Of(err) != errkind.Unreachable || !strings.Contains(err.Error(), "while the command ran") {
		t.Errorf("got %v", err)
	}
	if b, _ := os.ReadFile(file); string(b) != "x\n" {
		t.Errorf("the command ran %d times", strings.Count(string(b), "x"))
	}
}

// A peer that holds the connection open and says nothing is found out.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	cfg := n.config()
	cfg.KeepAlive = time.Second // a living peer answers within two, on any machine
	c := dial(t, cfg)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), sh("echo go; sleep 600"))
		ended <- err
	}()
	for n.running.Load() == 0 && len(ended) == 0 {
		time.Sleep(time.Millisecond)
	}
	n.silent.Store(true)
	select {
	case err := <-ended:
		if errkind.Of(err) != errkind.Unreachable {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the dead peer was not noticed")
	}
	n.silent.Store(false)
	if _, err := c.Run(t.Context(), sh("true")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func manySessions(t *testing.T, cfg Config) {
	c := dial(t, cfg)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			r, err := c.Run(t.Context(), sh(`sleep 0.02; echo "$1"`, fmt.Sprint(i)))
			if err != nil || string(r.Stdout) != fmt.Sprintln(i) {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
}

func uploads(t *testing.T, cfg Config) {
	c := dial(t, cfg)
	dir := filepath.Join(t.TempDir(), "it's a folder")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "$x y")
	big := strings.Repeat("0123456789abcdef", 1<<18)
	for _, content := range []string{"first", "", big} {
		if err := c.Upload(t.Context(), file, 0o640, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != content {
			t.Fatalf("read back %d bytes, %v; want %d", len(got), err, len(content))
		}
		if info, _ := os.Stat(file); info.Mode().Perm() != 0o640 {
			t.Errorf("mode %v", info.Mode())
		}
	}
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("disk error")))
	if err := c.Upload(t.Context(), file, 0o640, broken); err == nil || !strings.Contains(err.Error(), "disk error") {
		t.Errorf("a broken source: %v", err)
	}
	if got, _ := os.ReadFile(file); string(got) != big {
		t.Error("a failed upload changed the file")
	}
	for path, kind := range map[string]errkind.Kind{
		filepath.Join(dir, "no", "such"): errkind.Refused, "relative": errkind.Internal, "/a/../b": errkind.Internal,
	} {
		if err := c.Upload(t.Context(), path, 0o600, strings.NewReader("x")); errkind.Of(err) != kind || err == nil {
			t.Errorf("%s: %v, want %s", path, err, kind)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// The connection breaks in the middle of an upload: the old file stays.
func TestUploadBroken(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := dial(t, n.config())
	file := filepath.Join(t.TempDir(), "f")
	if err := c.Upload(t.Context(), file, 0o600, strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = w.Write([]byte(strings.Repeat("new", 1000)))
		n.reboot()
		_ = w.Close()
	})
	err := c.Upload(t.Context(), file, 0o600, r)
	wg.Wait()
	if errkind.Of(err) != errkind.Unreachable {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(file); string(got) != "old" {
		t.Errorf("the file has %d bytes now", len(got))
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	nodes := []*node{startNode(t), startNode(t), startNode(t)}
	p := NewPoolOn(2, nil)
	t.Cleanup(func() { _ = p.Close() })
	var inside, most int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			cfg := nodes[i%len(nodes)].config()
			cfg.Node = fmt.Sprintf("n%d", i%len(nodes))
			err := p.Do(t.Context(), cfg, func(c *Client) error {
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				defer func() { mu.Lock(); inside--; mu.Unlock() }()
				_, err := c.Run(t.Context(), sh("true"))
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most != 2 {
		t.Errorf("%d at a time, want 2", most)
	}
	for _, n := range nodes {
		if n.logins.Load() != 1 {
			t.Errorf("%d log-ins for one node", n.logins.Load())
		}
	}
	moved := nodes[1].config()
	moved.Node = "n0"
	if r, err := p.Run(t.Context(), moved, sh("echo moved")); err != nil || string(r.Stdout) != "moved\n" {
		t.Errorf("another address: %+v, %v", r, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Run(t.Context(), moved, sh("true")); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("after Close: %v", err)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	c := dial(t, startNode(t).config())
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if _, err := c.Run(t.Context(), sh("true")); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("got %v", err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	found := make([]string, 8)
	var wg sync.WaitGroup
	for i := range found {
		wg.Go(func() {
			s, err := LoadOrCreateKey(path)
			if err != nil {
				t.Error(err)
				return
			}
			found[i] = fingerprint(s)
		})
	}
	wg.Wait()
	if len(slices.Compact(found)) != 1 || found[0] == "" {
		t.Errorf("several keys: %v", found)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateKey(path); errkind.Of(err) != errkind.Refused || errkind.Action(err) == "" {
		t.Errorf("a readable key: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateKey(broken); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a broken key: %v", err)
	}
	if line := AuthorizedKey(newSigner(t), "ironrail\ncontroller"); !strings.HasPrefix(line, "ssh-ed25519 ") || strings.Count(line, "\n") != 1 {
		t.Errorf("line %q", line)
	}
}

// longOutput: of an output that is longer than what is kept, both ends are there,
// and whoever asks sees all of it.
func longOutput(t *testing.T, cfg Config) {
	c := dial(t, cfg)
	all := new(strings.Builder)
	got, err := c.Run(t.Context(), Command{Argv: []string{"seq", "1000000"}, MaxOutput: 1000, Stdout: all})
	if err != nil {
		t.Fatal(err)
	}
	const size = 6_888_896
	if all.Len() != size || !strings.HasSuffix(all.String(), "\n999999\n1000000\n") {
		t.Errorf("saw %d of %d bytes", all.Len(), size)
	}
	want := all.String()[:500] + fmt.Sprintf("\n[... %d bytes left out ...]\n", size-1000) + all.String()[size-500:]
	if string(got.Stdout) != want || got.Omitted != size-1000 {
		t.Errorf("%d omitted, kept %q", got.Omitted, got.Stdout)
	}
}
