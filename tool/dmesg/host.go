// SPDX-License-Identifier: Apache-2.0

package dmesg

import (
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Next actions of what the kernel itself, memory and NICs say.
const (
	doKernel  = "Collect the lines around it (journalctl -k -b) and reboot the node; if it comes again, change the kernel or the driver that the call trace names."
	doMemory  = "Look at the memory limit of the program or job that was killed."
	doPeerMem = "Install the RDMA stack (DOCA-OFED) before the NVIDIA driver and rebuild the driver, or let NCCL use DMA-BUF; GPUDirect RDMA is off else."
	doPort    = "Look at the cable, the transceiver and the port at both ends."
	doNIC     = "Power the node off and on; if it comes again, update the NIC's firmware, then have the NIC replaced."
)

// hostRules find what concerns the node as a whole and its NICs. Sources: messages of
// Linux (kernel/panic.c, kernel/watchdog.c, kernel/hung_task.c, mm/oom_kill.c,
// arch/x86/mm/fault.c, lib/bug.c; drivers/net/ethernet/mellanox/mlx5: events.c, health.c,
// cmd.c, en_main.c) and of nvidia-peermem.c of open-gpu-kernel-modules.
var hostRules = []rule{
	{"Kernel panic", lazyregexp.New(`Kernel panic - not syncing: (.*)`), kernelEvent(Fatal, "the kernel panicked: ")},
	{"BUG: ", lazyregexp.New(`watchdog: BUG: (soft lockup - CPU#\d+ stuck for \d+s!)`), kernelEvent(Degraded, "a CPU was stuck in the kernel: ")},
	{"hard LOCKUP", lazyregexp.New(`Watchdog detected (hard LOCKUP on cpu \d+)`), kernelEvent(Fatal, "a CPU hangs: ")},
	{"kernel BUG at", lazyregexp.New(`kernel BUG at (\S+)`), kernelEvent(Fatal, "the kernel failed an assertion at ")},
	{"BUG: ", lazyregexp.New(`^BUG: ((?:unable to handle|kernel NULL pointer|Bad page|Bad rss|KASAN|workqueue lockup|scheduling while atomic).*)`), kernelEvent(Fatal, "the kernel met a bug: ")},
	{"Oops: ", lazyregexp.New(`^(?:Internal error: )?(Oops: [^\[]*\[#\d+\])`), kernelEvent(Fatal, "the kernel met a bug: ")},
	{"general protection fault", lazyregexp.New(`^general protection fault(, .*)\[#\d+\]`), kernelEvent(Fatal, "the kernel met a bug: general protection fault")},
	{"rcu", lazyregexp.New(`rcu: INFO: (rcu\w* (?:self-)?detected (?:expedited )?stalls?.*)`), kernelEvent(Degraded, "a CPU did not answer for long: ")},
	{"INFO: task ", lazyregexp.New(`INFO: task (\S+) blocked for more than \d+ seconds`), kernelEvent(Degraded, "a program hangs in the kernel: ")},
	{"Killed process", lazyregexp.New(`(?:Out of memory|out of memory): Killed process \d+ \(([^)]*)\)`), func(m []string) (Event, bool) {
		return Event{Kind: "oom", Level: Application, Meaning: "the kernel killed " + m[1] + " for want of memory", Action: doMemory}, true
	}},
	{"oom-kill:", lazyregexp.New(`oom-kill:constraint=(\w+)`), func(m []string) (Event, bool) {
		return Event{Kind: "oom", Level: Notice, Meaning: "memory ran out, " + strings.ToLower(strings.TrimPrefix(m[1], "CONSTRAINT_"))}, true
	}},
	{"peermem", lazyregexp.New(`nvidia[_-]peermem:? .*(Unknown symbol \w+|disagrees about version of symbol \w+)`), func(m []string) (Event, bool) {
		return Event{Kind: "peermem", Level: Notice, Meaning: "nvidia-peermem could not be loaded: " + m[1], Action: doPeerMem}, true
	}},
	{"peermem", lazyregexp.New(`nvidia[_-]peermem:? (?:\w+:\d+ )?(?i:ERROR:?) (.*)`), func(m []string) (Event, bool) {
		return Event{Kind: "peermem", Level: Degraded, Meaning: "nvidia-peermem failed: " + m[1], Action: doPeerMem}, true
	}},
	{"Port module event[error]", lazyregexp.New(`mlx5_core ` + pci + `: Port module event\[error\]: module \d+, (.*)`), nicEvent(Degraded, "the transceiver or cable of a port: ", doPort)},
	{"Port module event", lazyregexp.New(`mlx5_core ` + pci + `: Port module event: module \d+, (Cable unplugged)`), nicEvent(Notice, "a port's module: ", doPort)},
	{"insufficient power", lazyregexp.New(`mlx5_core ` + pci + `: .*(Detected insufficient power on the PCIe slot \(\d+W\))`), nicEvent(Degraded, "", "Connect the NIC's power cable, or use a slot that gives enough power.")},
	{"High temperature on sensors", lazyregexp.New(`mlx5_core ` + pci + `: .*(High temperature on sensors.*)`), nicEvent(Degraded, "", "Look at the node's airflow and fans.")},
	{"mlx5_core", lazyregexp.New(`mlx5_core ` + pci + `: .*(Fatal error \d+ detected|device's health compromised|print_health_info.*synd 0x[1-9a-f]\w*|health recovery (?:failed|flow aborted).*|handling bad device.*)`), nicEvent(Fatal, "the NIC's firmware reports an error: ", doNIC)},
	{"mlx5_core", lazyregexp.New(`mlx5_core ` + pci + `.*: (?:cmd_work_handler|wait_func)\S*:?.*\b(timeout.*)`), nicEvent(Degraded, "the NIC's firmware did not answer: ", doNIC)},
	{"NETDEV WATCHDOG", lazyregexp.New(`NETDEV WATCHDOG: (?:CPU: \d+: )?()(\S+ \(\w+\): transmit queue \d+ timed out)`), nicEvent(Degraded, "", doNIC)},
	{"TX timeout", lazyregexp.New(`mlx5_core ` + pci + ` \S+: (TX timeout.*)`), nicEvent(Degraded, "a queue of the NIC stands: ", doNIC)},
	{": Link down", lazyregexp.New(`mlx5_core ` + pci + ` (\S+): Link down`), nicEvent(Notice, "the link went down: ", doPort)},
}

// kernelEvent makes an event about the node's kernel.
func kernelEvent(level Level, meaning string) func([]string) (Event, bool) {
	return func(m []string) (Event, bool) {
		return Event{Kind: "kernel", Level: level, Meaning: meaning + m[1], Action: doKernel}, true
	}
}

// nicEvent makes an event about a NIC at m[1].
func nicEvent(level Level, meaning, action string) func([]string) (Event, bool) {
	return func(m []string) (Event, bool) {
		return Event{Kind: "nic", Bus: m[1], Level: level, Meaning: meaning + m[2], Action: action}, true
	}
}
