// SPDX-License-Identifier: Apache-2.0

// Package ibsimtest lets the programs of infiniband-diags look at a simulated
// subnet: ibsim answers their management packets, and libumad2sim, which is
// loaded before libibumad, brings them there. Tests are skipped where the
// packages ibsim-utils and infiniband-diags are not installed.
package ibsimtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
)

// hangs is when a program that makes no progress counts as hung: it judges nothing.
const hangs = 5 * time.Minute

// preload is libumad2sim of Debian.
const preload = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"

// Subnet is a simulated subnet that runs until its test ends.
type Subnet struct {
	t    testing.TB
	name string
}

// Start simulates a subnet, which is written as ibnetdiscover prints one.
func Start(t testing.TB, topology string) *Subnet {
	t.Helper()
	peertest.Need(t, "ibsim", "ibnetdiscover", preload)
	file := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(file, []byte(topology), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &Subnet{t: t, name: fmt.Sprintf("ironrail%d-%d", os.Getpid(), time.Now().UnixNano())}
	ctx, cancel := context.WithCancel(context.Background())
	sim := exec.CommandContext(ctx, "ibsim", "-s", file)
	sim.Env, sim.WaitDelay = append(os.Environ(), "IBSIM_SOCKNAME="+s.name), time.Second
	in, err := sim.StdinPipe() // its console ends with it
	if err != nil {
		t.Fatal(err)
	}
	output := &console{ready: make(chan struct{})}
	sim.Stdout, sim.Stderr = output, output
	if err := sim.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = sim.Wait(); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended; _ = in.Close() })
	s.wait(output, ended)
	return s
}

// console is what the simulator prints; ready is closed at its first prompt.
type console struct {
	ready chan struct{}

	mu   sync.Mutex // guards what follows
	text []byte
	up   bool
}

// Write implements io.Writer.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text = append(c.text, b...); !c.up && bytes.Contains(c.text, []byte("sim> ")) {
		c.up = true
		close(c.ready)
	}
	return len(b), nil
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.text)
}

// wait waits for the simulator's prompt and asks until it answers, for as long as it
// runs: on a loaded machine each takes as long as it takes. A client that comes too
// early waits forever, so that each is given twice the time of the one before.
func (s *Subnet) wait(output *console, ended <-chan struct{}) {
	s.t.Helper()
	select {
	case <-output.ready:
	case <-ended:
	case <-time.After(hangs):
	}
	for limit := 2 * time.Second; ; limit *= 2 {
		out, err := s.run(limit, "ibnetdiscover", "-l")
		if err == nil && len(out) > 0 {
			return
		}
		select {
		case <-ended:
			s.t.Fatalf("ibsim has ended: %s", output)
		default:
		}
		if limit > hangs {
			s.t.Fatalf("ibsim does not answer: %v: %s\nibsim: %s", err, out, output)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Run runs a program within the subnet and returns all that it prints.
func (s *Subnet) Run(program string, args ...string) []byte {
	s.t.Helper()
	out, err := s.run(hangs, program, args...)
	if err != nil {
		s.t.Fatalf("%s %v: %v: %s", program, args, err, out)
	}
	return out
}

func (s *Subnet) run(limit time.Duration, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Env, c.WaitDelay = append(os.Environ(), "LD_PRELOAD="+preload, "IBSIM_SOCKNAME="+s.name), time.Second
	return c.CombinedOutput()
}

// Small is a subnet of two switches and two HCAs; names are as people give them.
const Small = `
switchguid=0xb0cf0e0301000000(b0cf0e0301000000)
Switch	8 "S-b0cf0e0301000000"		# "leaf; 1:/U1" enhanced port 0 lid 1 lmc 0
[1]	"H-946dae0300000000"[1]		# "gpu-1 mlx5_0"
[2]	"H-946dae0300000010"[2]		# "gpu-2 mlx5_0"
[5]	"S-b0cf0e0302000000"[3]		# " spine "

switchguid=0xb0cf0e0302000000(b0cf0e0302000000)
Switch	8 "S-b0cf0e0302000000"		# " spine " enhanced port 0 lid 2 lmc 0
[3]	"S-b0cf0e0301000000"[5]		# "leaf; 1:/U1"

caguid=0x946dae0300000000
Ca	1 "H-946dae0300000000"		# "gpu-1 mlx5_0"
[1]	"S-b0cf0e0301000000"[1]		# "leaf; 1:/U1"

caguid=0x946dae0300000010
Ca	2 "H-946dae0300000010"		# "gpu-2 mlx5_0"
[2]	"S-b0cf0e0301000000"[2]		# "leaf; 1:/U1"
`
