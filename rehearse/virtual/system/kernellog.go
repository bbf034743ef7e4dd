// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// message is a line of the kernel's log.
type message struct {
	after time.Duration // after the boot
	text  string
}

// kernelLog is what the kernel has said since it booted.
func (n *node) kernelLog() []message {
	release := n.cfg.Kernel.Release()
	log := []message{{0, n.cfg.Twin.Banner(release)}}
	if cmdline := n.fs.Text("proc/cmdline"); cmdline != "" {
		log = append(log, message{0, "Command line: " + cmdline})
	}
	at := 2900 * time.Millisecond
	for _, p := range n.cfg.Ports {
		if !n.tree.exists("sys/class/net/" + p.Netdev) {
			continue
		}
		word := "Link down"
		if n.cfg.Site.model.State(p.ID).Up {
			word = "Link up"
		}
		at += 113 * time.Millisecond
		log = append(log, message{at, fmt.Sprintf("mlx5_core %s %s: %s", p.PCI, p.Netdev, word)})
	}
	return append(log, n.gpuMessages(at+time.Second)...)
}

// gpuMessages is what the drivers of GPUs have said of memory errors.
func (n *node) gpuMessages(at time.Duration) []message {
	var log []message
	if n.loaded("nvidia") {
		for _, g := range n.gpus() {
			if n.memoryAt(g.address()).BadBits == 0 {
				continue
			}
			bus, _, _ := strings.Cut(g.address(), ".")
			for _, text := range []string{
				fmt.Sprintf("NVRM: GPU at PCI:%s: %s", bus, g.uuid),
				"NVRM: GPU Board Serial Number: " + g.serial,
				fmt.Sprintf("NVRM: Xid (PCI:%s): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, subpartition 0.", bus),
			} {
				at += 10 * time.Microsecond
				log = append(log, message{at, text})
			}
		}
	}
	if n.loaded("amdgpu") {
		for _, bus := range n.amdAddresses() {
			if bad := n.memoryAt(bus).BadBits; bad > 0 {
				at += 10 * time.Microsecond
				log = append(log, message{at, fmt.Sprintf("amdgpu %s: amdgpu: socket: 0, die: 0, %d new uncorrectable hardware errors detected in umc block", bus, bad)})
			}
		}
	}
	return log
}

func runDmesg(_ context.Context, c call) int {
	for _, m := range c.n.kernelLog() {
		c.print(fmt.Sprintf("[%12.6f] %s\n", m.after.Seconds(), m.text))
	}
	return 0
}

// runJournalctl shows the kernel's messages of this boot; a virtual node keeps no
// others but what a unit said last that failed.
func runJournalctl(_ context.Context, c call) int {
	if !slices.Contains(c.Argv, "-k") && !slices.Contains(c.Argv, "--dmesg") {
		for _, a := range c.Argv {
			if unit, ok := strings.CutPrefix(a, "--unit="); ok && c.n.tree.exists("run/log/"+unit) {
				b, _ := c.n.tree.ReadFile("run/log/" + unit) // it is there
				c.print(string(b))
				return 0
			}
		}
		c.print("-- No entries --\n")
		return 0
	}
	booted := c.n.cfg.Clock.Now().Add(-c.n.cfg.Kernel.Uptime()).UTC()
	for _, m := range c.n.kernelLog() {
		c.print(fmt.Sprintf("%s %s kernel: %s\n", booted.Add(m.after).Format("2006-01-02T15:04:05-0700"), c.n.hostname(), m.text))
	}
	return 0
}
