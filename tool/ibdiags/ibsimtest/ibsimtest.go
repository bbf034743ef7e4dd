// Package ibsimtest lets the programs of infiniband-diags look at a simulated
// subnet: ibsim answers their management packets, and libumad2sim, which is
// loaded before libibumad, brings them there. Tests are skipped where the
// packages ibsim-utils and infiniband-diags are not installed.
package ibsimtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

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
	for _, program := range []string{"ibsim", "ibnetdiscover"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no " + program + " here: install ibsim-utils and infiniband-diags")
		}
	}
	if _, err := os.Stat(preload); err != nil {
		t.Skip("no libumad2sim here: install libumad2sim0")
	}
	file := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(file, []byte(topology), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &Subnet{t: t, name: fmt.Sprintf("ironrail%d-%d", os.Getpid(), time.Now().UnixNano())}
	ctx, cancel := context.WithCancel(context.Background())
	sim := exec.CommandContext(ctx, "ibsim", "-s", "-n", file)
	sim.Env, sim.WaitDelay = append(os.Environ(), "IBSIM_SOCKNAME="+s.name), time.Second
	if err := sim.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = sim.Wait() // it was killed
	})
	s.wait()
	return s
}

// wait asks until the simulator answers: a client that comes too early waits for
// ever.
func (s *Subnet) wait() {
	s.t.Helper()
	until := time.Now().Add(20 * time.Second)
	for {
		if out, err := s.run(2*time.Second, "ibnetdiscover", "-l"); err == nil && len(out) > 0 {
			return
		} else if time.Now().After(until) {
			s.t.Fatalf("ibsim does not answer: %v: %s", err, out)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Run runs a program within the subnet and returns all that it prints.
func (s *Subnet) Run(program string, args ...string) []byte {
	s.t.Helper()
	out, err := s.run(30*time.Second, program, args...)
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
