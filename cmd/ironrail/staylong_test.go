// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stayFor is how long TestLongServeStays has serve live; the virtual rack is as many times faster
// as rackSpeed says.
var stayFor = flag.Duration("stay", 0, "how long TestLongServeStays lasts; 0: three rounds")

// rackSpeed is how many times faster than in a room the hardware of that test is: a minute is half a
// day, an hour four weeks.
const rackSpeed = "700"

// stayer is a serve on a virtual rack, in processes of their own.
type stayer struct {
	t   *testing.T
	dir string
	url string // of the page
}

// run runs a command on the rack, and returns what it printed.
func (s *stayer) run(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// command is the program of this test, as the script tests have it, in the site's folder.
func (s *stayer) command(args ...string) *exec.Cmd {
	return exec.CommandContext(context.WithoutCancel(s.t.Context()), "ironrail", append([]string{"-C", s.dir}, args...)...) // it is ended by a signal
}

// until runs a command until its output has a text.
func (s *stayer) until(text string, args ...string) {
	s.t.Helper()
	var out []byte
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if out, _ = s.command(args...).CombinedOutput(); strings.Contains(string(out), text) {
			return
		}
	}
	s.t.Fatalf("%v: no %q after a minute:\n%s", args, text, out)
}

// sizes are what must not grow.
type sizes struct{ goroutines, files, heap float64 }

// measure reads the metrics of serve.
func (s *stayer) measure() (z sizes) {
	s.t.Helper()
	want := map[string]*float64{"go_goroutines": &z.goroutines, "process_open_fds": &z.files, "go_memstats_heap_inuse_bytes": &z.heap}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}).Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if to := want[name]; to != nil {
			if *to, err = strconv.ParseFloat(value, 64); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	if z.goroutines == 0 || z.files == 0 || z.heap == 0 {
		s.t.Fatalf("the metrics do not say %+v", z)
	}
	return z
}

// least measures some times, and takes the smallest of each: what is under way for the moment does not
// count.
func (s *stayer) least() sizes {
	z := s.measure()
	for range 8 {
		time.Sleep(500 * time.Millisecond)
		m := s.measure()
		z = sizes{min(z.goroutines, m.goroutines), min(z.files, m.files), min(z.heap, m.heap)}
	}
	return z
}

// begin starts rack and serve, with a manager of services that is this test.
func (s *stayer) begin() (notices <-chan string) {
	s.t.Helper()
	rack := s.command("rack", "--speed", rackSpeed)
	if err := rack.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = rack.Process.Signal(os.Interrupt); _ = rack.Wait() })
	s.until("r01-u01 BMC", "rack", "devices")
	path := filepath.Join(s.t.TempDir(), "n")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		s.t.Fatal(err)
	}
	said := make(chan string, 1000)
	go func() {
		b := make([]byte, 1000)
		for {
			n, err := manager.Read(b)
			if err != nil {
				close(said)
				return
			}
			select {
			case said <- string(b[:n]):
			default:
			}
		}
	}()
	serve := s.command("--rack", "--json", "serve", "--listen", "127.0.0.1:0", "--boot", "yes", "--drift", "20s")
	serve.Env = append(os.Environ(), "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=8000000", "GOGC=10")
	out, err := serve.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		if err := serve.Wait(); err != nil {
			s.t.Errorf("serve ended with %v", err)
		}
		_ = manager.Close()
	})
	var at struct{ URL string }
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		s.t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	s.url = at.URL
	return said
}

// TestLongServeStays: serve lives through applies, rebuilds, holds, reboots, drift and abandoned clients, says that
// it is ready and lives, and what it needs does not grow from round to round.
func TestLongServeStays(t *testing.T) {
	if testing.Short() {
		t.Skip("on wall time")
	}
	s := &stayer{t: t, dir: t.TempDir()}
	for _, name := range []string{"site.hcl", "manifest.csv"} {
		b, err := os.ReadFile(filepath.Join("../../examples/demo", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	said := s.begin()
	select {
	case text := <-said:
		if text != "READY=1\n" {
			t.Errorf("it notified %q first", text)
		}
	case <-time.After(time.Minute):
		t.Fatal("it never said that it is ready")
	}
	s.run("--rack", "apply", "--auto-approve")
	var first sizes
	begun, rounds := time.Now(), 0
	for ; rounds < 3 || time.Since(begun) < *stayFor; rounds++ {
		s.round(rounds)
		if rounds == 0 {
			first = s.least()
		}
	}
	last := s.least()
	t.Logf("%d rounds in %v: %+v, then %+v", rounds, time.Since(begun).Round(time.Second), first, last)
	if last.goroutines > first.goroutines+10 {
		t.Errorf("goroutines grew from %v to %v", first.goroutines, last.goroutines)
	}
	if last.files > first.files+8 {
		t.Errorf("open files grew from %v to %v", first.files, last.files)
	}
	if last.heap > 2*first.heap+16<<20 {
		t.Errorf("the heap grew from %.0f to %.0f bytes", first.heap, last.heap)
	}
	alive := 0
	for len(said) > 0 {
		if <-said == "WATCHDOG=1\n" {
			alive++
		}
	}
	if least := int(time.Since(begun)/(8*time.Second)) - 1; alive < min(least, 900) {
		t.Errorf("it gave %d signs of life, and %d are the least", alive, least)
	}
}

// round is some days of a site.
func (s *stayer) round(i int) {
	node := fmt.Sprintf("r0%d-u%02d", 1+i%2, 1+8*(i%4))
	s.run("--rack", "hold", node, "--reason", "round "+strconv.Itoa(i))
	s.run("--rack", "status")
	s.run("--rack", "why", node)
	s.run("--rack", "release", node)
	s.run("--rack", "boot", node, "pxe", "--auto-approve")
	s.run("--rack", "power", "cycle", node, "--auto-approve", "--kill-jobs")
	s.until("asked to boot", "--rack", "status")
	s.run("--rack", "rebuild", node, "--auto-approve", "--jobs-unknown")
	gone, cancel := context.WithCancel(s.t.Context())
	c := exec.CommandContext(gone, "ironrail", "-C", s.dir, "--rack", "events", "--follow") // a client that is killed
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	cancel()
	_ = c.Wait()
	s.run("--rack", "plan")
	s.run("--rack", "report")
}
