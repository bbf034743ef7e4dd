// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/etcdtest"
)

// childConfig is the variable by which the test binary becomes an owner in a process of its
// own: a Config in JSON.
const childConfig = "IRONRAIL_TEST_ETCD_OWNER"

// takeoverTime is within how much time a standby is the owner after the last one was lost.
const takeoverTime = 15 * time.Second

// TestPeerOwnerLost: an owner that is killed, stands still for longer than its lease, or is
// cut off is followed by a standby. What the lost owner was answered is there, and nothing
// of it comes after the standby's claim. An owner that lives notices before that claim.
func TestPeerOwnerLost(t *testing.T) {
	t.Parallel()
	if os.Getenv(childConfig) != "" {
		os.Exit(runOwner())
	}
	peertest.Need(t, "etcd")
	r := newRig(t)
	for name, c := range map[string]struct {
		hit   func(*etcdtest.Route, *os.Process) error
		after func(*etcdtest.Route, *os.Process) error // once the standby is the owner
		ends  bool                                     // it notices before the standby claims
		code  int
	}{
		"killed":      {hit: func(_ *etcdtest.Route, p *os.Process) error { return p.Kill() }, code: -1},
		"cut off":     {hit: func(r *etcdtest.Route, _ *os.Process) error { r.Cut(true); return nil }, ends: true, code: 11},
		"mute":        {hit: func(r *etcdtest.Route, _ *os.Process) error { r.Mute(true); return nil }, ends: true, code: 11},
		"stood still": {hit: func(_ *etcdtest.Route, p *os.Process) error { return p.Signal(syscall.SIGSTOP) }, after: func(_ *etcdtest.Route, p *os.Process) error { return p.Signal(syscall.SIGCONT) }, code: 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			standby := r.open(t, name).(*Store)
			defer standby.Close()
			way := r.Route(t)
			o := startOwner(t, r.config(name, way.Endpoints))
			acked := o.acks(t, 30)
			hit := time.Now()
			if err := c.hit(way, o.cmd.Process); err != nil {
				t.Fatal(err)
			}
			f, err := standby.AwaitClaim(t.Context(), "standby")
			claimed := time.Now()
			if err != nil || claimed.Sub(hit) > takeoverTime {
				t.Fatalf("the standby claims after %v: %v", claimed.Sub(hit), err)
			}
			t.Logf("takeover after %.1f s", claimed.Sub(hit).Seconds())
			if _, err := standby.Append(t.Context(), f, state.Batch{Records: []state.Record{{Kind: state.Note, Run: "standby"}}}); err != nil {
				t.Fatal(err)
			}
			if c.after != nil {
				if err := c.after(way, o.cmd.Process); err != nil {
					t.Fatal(err)
				}
			}
			rest, ended := o.wait(t, c.code)
			acked = append(acked, rest...)
			if c.ends && (ended.IsZero() || ended.After(claimed)) {
				t.Errorf("the lost owner ends at %v, and the standby claims at %v", ended, claimed)
			}
			checkJournal(t, standby, acked)
		})
	}
}

// checkJournal: what was answered is there, and the standby's record is the last.
func checkJournal(t *testing.T, s *Store, acked []string) {
	t.Helper()
	at, standby := map[string]uint64{}, uint64(0)
	err := s.Read(t.Context(), 1, func(r state.Record) error {
		if r.Run == "standby" {
			standby = r.Seq
			return nil
		}
		if standby != 0 {
			t.Errorf("record %d of the lost owner comes after the standby's", r.Seq)
		}
		at[fmt.Sprintf("%d %s", r.Seq, r.Append)] = r.Seq
		return nil
	})
	if err != nil || standby == 0 {
		t.Fatalf("the standby's record is %d: %v", standby, err)
	}
	for _, a := range acked {
		if at[a] == 0 {
			t.Errorf("append %q was answered and is not there", a)
		}
	}
	if lost := len(at) - len(acked); lost < 0 || lost > 1 { // the one under way may be there
		t.Errorf("%d records, %d answers", len(at), len(acked))
	}
}

// owner is a process that owns the state and appends.
type owner struct {
	cmd   *exec.Cmd
	lines chan string
}

func startOwner(t *testing.T, c Config) *owner {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{cmd: exec.Command(os.Args[0], "-test.run=^TestPeerOwnerLost$"), lines: make(chan string, 1<<16)} //nolint:noctx // it ends with the test
	o.cmd.Env = append(os.Environ(), childConfig+"="+string(text))
	o.cmd.Stderr = os.Stderr
	out, err := o.cmd.StdoutPipe()
	if err == nil {
		err = o.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.cmd.Process.Kill() })
	go func() {
		defer close(o.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			o.lines <- s.Text()
		}
	}()
	return o
}

// acks returns the first n appends that the owner was answered.
func (o *owner) acks(t *testing.T, n int) (acked []string) {
	t.Helper()
	for len(acked) < n {
		select {
		case line, ok := <-o.lines:
			if !ok {
				t.Fatal("the owner ended")
			}
			if a, is := strings.CutPrefix(line, "ack "); is {
				acked = append(acked, a)
			}
		case <-time.After(takeoverTime):
			t.Fatal("the owner does not write")
		}
	}
	return acked
}

// wait returns what else it was answered, and when it said that its lease has ended.
func (o *owner) wait(t *testing.T, code int) (acked []string, ended time.Time) {
	t.Helper()
	limit := time.After(takeoverTime)
	for {
		select {
		case line, ok := <-o.lines:
			if !ok {
				_ = o.cmd.Wait()
				if got := o.cmd.ProcessState.ExitCode(); got != code {
					t.Errorf("the lost owner ends with code %d, want %d", got, code)
				}
				return acked, ended
			}
			if a, is := strings.CutPrefix(line, "ack "); is {
				acked = append(acked, a)
			}
			if at, is := strings.CutPrefix(line, "ended "); is {
				ended, _ = time.Parse(time.RFC3339Nano, at)
			}
		case <-limit:
			t.Fatal("the lost owner does not end")
		}
	}
}

// runOwner is the owner: it appends, says so, and ends with 11 when it may not any more.
func runOwner() int {
	var c Config
	if err := json.Unmarshal([]byte(os.Getenv(childConfig)), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	s, err := Open(ctx, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f, err := s.Claim(ctx, "the lost owner")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		b := state.Batch{Records: []state.Record{{Kind: state.Note, Run: "lost"}}, ID: state.NewAppendID()}
		seq, err := s.Append(ctx, f, b)
		if err == nil {
			fmt.Printf("ack %d %s\n", seq, b.ID)
			continue
		}
		<-s.Lease(f).Ended()
		fmt.Printf("ended %s\n", time.Now().Format(time.RFC3339Nano))
		_, isUnknown := errors.AsType[*state.UnknownError](err)
		if !isUnknown && !errors.Is(err, state.ErrLeaseEnded) && !errors.Is(err, state.ErrFenced) {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 11
	}
}

// TestPeerMembersLost: while the leader of the members is killed, stands still or is cut off
// from the others, the owner keeps its lease and goes on; nothing is written twice.
func TestPeerMembersLost(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "etcd")
	r := newRig(t)
	config := r.config("x", r.Endpoints())
	config.lease = time.Minute // a busy machine may take longer over an election than an owner's lease lasts
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := beOwner(t, s)
	var acked []string
	write := func(n int) {
		t.Helper()
		for range n {
			b := state.Batch{Records: []state.Record{{Kind: state.Note, Run: "owner"}}, ID: state.NewAppendID()}
			seq, err := s.Append(t.Context(), f, b)
			if err != nil {
				t.Fatalf("after %d appends: %v", len(acked), err)
			}
			acked = append(acked, fmt.Sprintf("%d %s", seq, b.ID))
		}
	}
	for _, c := range []struct{ hit, heal func(int) }{
		{r.Kill, r.Restart},
		{r.Stop, func(i int) { r.Continue(i); r.Await(i) }},
		{r.Isolate, func(i int) { r.Rejoin(i); r.Await(i) }},
	} {
		write(20)
		leader := r.leader(t)
		var wg sync.WaitGroup
		wg.Go(func() { time.Sleep(5 * time.Millisecond); c.hit(leader) }) // under an append
		write(20)
		wg.Wait()
		write(20)
		c.heal(leader)
	}
	if _, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{{Kind: state.Note, Run: "standby"}}}); err != nil {
		t.Fatal(err)
	}
	checkJournal(t, s, acked)
}
