// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qemu"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
)

// patience is for a busy host; nothing waits that long when it works.
const patience = 5 * time.Minute

// fakeQEMU is a process that only sleeps, with a QMP server beside it.
type fakeQEMU struct {
	args     string
	cmd      *exec.Cmd
	commands chan string // every QMP command with its arguments
	conn     chan net.Conn
}

// bench is one machine whose QEMUs are fakes.
type bench struct {
	*machine
	t      *testing.T
	starts chan *fakeQEMU
	broken bool // launches fail

	mu  sync.Mutex
	buf bytes.Buffer // the effects; guarded by mu
}

func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// newBench returns a machine that nobody runs yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	procs, err := LoadProcesses(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, starts: make(chan *fakeQEMU, 16)}
	b.machine = &machine{
		Machine: rack.Machine{Name: "n1", Hardware: rack.BIOS, Serial: "S1", UUID: "6c616230-0000-4000-8000-000000000001"},
		files:   qemu.FilesIn(dir, "n1"), sol: 9001, procs: procs, slog: slog.New(slog.DiscardHandler),
		log: NewLog(b, time.Now), queue: make(chan action, queueLength), launch: b.launchFake,
	}
	b.disks = func() ([]rack.Disk, error) { return []rack.Disk{rack.SystemDiskOf(b.Machine)}, nil }
	return b
}

// runs starts the machine's queue; the returned func ends it and returns the
// effects.
func (b *bench) runs() func() []Effect {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.run(ctx) }()
	end := sync.OnceValue(func() []Effect {
		cancel()
		<-done
		b.mu.Lock()
		defer b.mu.Unlock()
		es, err := parseEffects(&b.buf)
		if err != nil {
			b.t.Error(err)
		}
		return es
	})
	b.t.Cleanup(func() { end() })
	return end
}

func (b *bench) launchFake(_ string, args []string) (*vm, error) {
	if b.broken {
		return nil, errors.New("no such program")
	}
	l, err := net.Listen("unix", b.files.QMP)
	if err != nil {
		return nil, err
	}
	f := &fakeQEMU{args: strings.Join(args, " "), cmd: exec.Command("sleep", "600"), commands: make(chan string, 64), conn: make(chan net.Conn, 1)}
	f.cmd.SysProcAttr = childAttr()
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	v := &vm{cmd: f.cmd, exited: make(chan struct{})}
	go func() { // the next run listens at the same path, which Close removes
		v.exitErr = f.cmd.Wait()
		_ = l.Close()
		close(v.exited)
	}()
	go f.serve(l)
	b.starts <- f
	return v, nil
}

// serve answers QMP as QEMU does, for as much as the supervisor uses.
func (f *fakeQEMU) serve(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintln(conn, `{"QMP":{"version":{},"capabilities":[]}}`)
	in := bufio.NewScanner(conn)
	for in.Scan() {
		var c struct {
			Execute   string
			Arguments json.RawMessage
			ID        string
		}
		if json.Unmarshal(in.Bytes(), &c) != nil {
			return
		}
		value := "{}"
		switch c.Execute {
		case "query-blockstats":
			value = `[{"device":"d0","stats":{"wr_bytes":4096,"wr_operations":2}}]`
		case "quit":
			_ = f.cmd.Process.Kill()
		case "cont":
			f.conn <- conn
		}
		fmt.Fprintf(conn, `{"return":%s,"id":"%s"}`+"\n", value, c.ID)
		f.commands <- strings.TrimSpace(c.Execute + " " + string(c.Arguments))
	}
}

// says sends an event of QEMU once the machine runs.
func (f *fakeQEMU) says(t *testing.T, event string) {
	t.Helper()
	select {
	case conn := <-f.conn:
		fmt.Fprintln(conn, event)
	case <-time.After(patience):
		t.Fatal("the machine was never let run")
	}
}

// next waits for the next start of a QEMU.
func (b *bench) next() *fakeQEMU {
	b.t.Helper()
	select {
	case f := <-b.starts:
		return f
	case <-time.After(patience):
		b.t.Fatal("QEMU was not started")
		return nil
	}
}

// heard waits until the fake has got this QMP command.
func (f *fakeQEMU) heard(t *testing.T, want string) {
	t.Helper()
	for {
		select {
		case got := <-f.commands:
			if got == want {
				return
			}
		case <-time.After(patience):
			t.Fatalf("QMP command %q never came", want)
		}
	}
}

// do runs one chassis program.
func (b *bench) do(words string) string {
	b.t.Helper()
	out, err := b.chassis(strings.Fields(words))
	if err != nil {
		b.t.Fatalf("chassis %s: %v", words, err)
	}
	return out
}

// waitOff waits until the power reads as off.
func (b *bench) waitOff() {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for b.do("get power") != "power:0\n" {
		if time.Now().After(deadline) {
			b.t.Fatal("the power still reads as on")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (b *bench) machines() []rack.Machine { return []rack.Machine{b.Machine} }
