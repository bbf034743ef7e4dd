// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/validate/floor"
)

// oneMachine is what a machine of hardware lab-bios is.
const oneMachine = `hardware "machine" {
  vendor  = "ironrail"
  product = "lab-bios"
  boot    = "bios"
  cpu {
    sockets = 1
    cores   = 1
  }
  memory {
    size = "1GiB"
  }
  disk "os" {
    type  = "virtio"
    count = 1
    size  = ">= 4GB"
  }
}
`

// measuring tests a machine as a node that another tool has installed, with load, and held
// against a hardware block and limits.
type measuring struct {
	t             *testing.T
	l             *labtest.Lab
	list, knownAs string // files
}

// test returns what is said of the machine, with these limits of a validation block.
func (m measuring) test(limits string) report.Input {
	m.t.Helper()
	expect := m.l.Program("expect.hcl", oneMachine+"\nvalidation \"lab\" {\n"+limits+"}\n")
	res := m.l.Ironrail("test", "--hosts", m.list, "--expect", expect, "--load", "--format", "json", "--key", m.l.Key(), "--known-hosts", m.knownAs, "--accept-new-host-keys")
	var in report.Input
	if err := json.Unmarshal([]byte(res.Stdout), &in); err != nil || len(in.Nodes) != 1 {
		m.t.Fatalf("test --hosts says nothing of the machine (%v): %s", err, res)
	}
	return in
}

// figure is what was measured; 0: nothing was.
func figure(in report.Input, check string) float64 {
	for _, t := range in.Tests {
		for _, x := range t.Measurements {
			if x.Check == check {
				return x.Measured
			}
		}
	}
	return 0
}

// TestSpeed: a disk that QEMU throttles and a CPU that a control group holds down are found on
// a real machine, each by its part, and the machine is well without them. Emulation on a busy
// computer is noisy: the limit of the disk is a fiftieth of what was measured, and that of the CPU
// a third; the faults are at 4 MiB/s and a tenth.
func TestSpeed(t *testing.T) {
	const node = "n4"
	l := labtest.Up(t, labtest.Options{Name: "speed", Machines: []string{node}, HCL: bareSite()})
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(node)
	m := measuring{t: t, l: l, list: l.Program("hosts.txt", "root@10.77.0.14 "+node+"\n"), knownAs: l.Program("known_hosts", "")}

	well := m.test("")
	disk, cpu, memory := figure(well, floor.DiskRead), figure(well, floor.HostCPU), figure(well, floor.HostMemory)
	t.Logf("disk %.0f MB/s, a billion operations in %.1f s, memory %.0f MB/s", disk/1e6, cpu, memory/1e6)
	if disk <= 0 || cpu <= 0 || memory <= 0 || well.Nodes[0].Status != report.Accepted {
		t.Fatalf("%s as it is: %+v", node, well)
	}
	limits := fmt.Sprintf("  limit %q {\n    at_least = \"%.0fkB/s\"\n  }\n  limit %q {\n    at_most = \"%.0fms\"\n  }\n", floor.DiskRead, max(disk/50, 8e6)/1e3, floor.HostCPU, 3*cpu*1e3)
	for _, c := range []struct{ fault, part string }{{"", ""}, {"slow-disk", "disk at "}, {"slow-cpu", "CPU core 0"}, {"clear", ""}} {
		if c.fault != "" {
			l.Fault(node, "clear")
		}
		if c.fault != "" && c.fault != "clear" {
			l.Fault(node, c.fault)
		}
		said := m.test(limits)
		n := said.Nodes[0]
		found := slices.ContainsFunc(n.Findings, func(f report.Finding) bool { return strings.Contains(f.Part, c.part) })
		t.Logf("%q: %s, disk %.0f MB/s, a billion operations in %.1f s, %+v", c.fault, n.Status, figure(said, floor.DiskRead)/1e6, figure(said, floor.HostCPU), n.Findings)
		switch {
		case c.part == "" && n.Status != report.Accepted:
			t.Errorf("%q: %s is %s: %+v", c.fault, node, n.Status, n.Findings)
		case c.part != "" && (n.Status != report.NotAccepted || !found):
			t.Errorf("%s is not found: %s is %s: %+v", c.fault, node, n.Status, n.Findings)
		}
	}
}
