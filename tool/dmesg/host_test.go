// SPDX-License-Identifier: Apache-2.0

package dmesg

import (
	"strings"
	"testing"
)

// TestHostEvents: what the kernel says of itself, of memory, of nvidia-peermem and of
// mlx5 NICs, in the words of Linux 5.15 to 6.12; and lines that are no event.
func TestHostEvents(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"Kernel panic - not syncing: Fatal exception":                                                                             "kernel fatal",
		"kernel BUG at mm/slub.c:449!":                                                                                            "kernel fatal",
		"BUG: unable to handle page fault for address: ffffb6c88493fc60":                                                          "kernel fatal",
		"BUG: kernel NULL pointer dereference, address: 0000000000000008":                                                         "kernel fatal",
		"Oops: 0002 [#1] PREEMPT SMP NOPTI":                                                                                       "kernel fatal",
		"general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1] SMP NOPTI":                    "kernel fatal",
		"watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4242]":                                                        "kernel degraded",
		"NMI watchdog: Watchdog detected hard LOCKUP on cpu 3":                                                                    "kernel fatal",
		"rcu: INFO: rcu_sched self-detected stall on CPU":                                                                         "kernel degraded",
		"INFO: task nvidia-smi:1234 blocked for more than 120 seconds.":                                                           "kernel degraded",
		"Out of memory: Killed process 4242 (python) total-vm:123456kB, anon-rss:1kB":                                             "oom application",
		"Memory cgroup out of memory: Killed process 4242 (all_reduce_perf) total-vm:123456kB":                                    "oom application",
		"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,task=python,pid=4242,uid=0":               "oom notice",
		"nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)":                                                 "peermem notice",
		"nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client":                                        "peermem notice",
		"nvidia-peermem nv_get_p2p_free_callback:123 ERROR detected invalid context, skipping further processing":                 "peermem degraded",
		"mlx5_core 0000:1a:00.0 ens3f0np0: Link down":                                                                             "nic notice 0000:1a:00.0",
		"mlx5_core 0000:63:00.1: Port module event: module 1, Cable unplugged":                                                    "nic notice 0000:63:00.1",
		"mlx5_core 0000:63:00.1: Port module event[error]: module 1, Cable error, High Temperature":                               "nic degraded 0000:63:00.1",
		"mlx5_core 0000:01:00.0: mlx5_pcie_event:326:(pid 165): Detected insufficient power on the PCIe slot (27W).":              "nic degraded 0000:01:00.0",
		"mlx5_core 0000:01:00.0: temp_warn:201:(pid 0): High temperature on sensors with bit set 0 1":                             "nic degraded 0000:01:00.0",
		"mlx5_core 0000:01:00.0: poll_health:821:(pid 0): Fatal error 1 detected":                                                 "nic fatal 0000:01:00.0",
		"mlx5_core 0000:01:00.0: wait_func:1178:(pid 1234): MANAGE_PAGES(0x108) timeout. Will cause a leak of a command resource": "nic degraded 0000:01:00.0",
		"NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out":                                                           "nic degraded",
		"mlx5_core 0000:1a:00.0 ens3f0np0: TX timeout detected":                                                                   "nic degraded 0000:1a:00.0",
		"mlx5_core 0000:1a:00.0 ens3f0np0: Link up":                                                                               "",
		"mlx5_core 0000:63:00.1: Port module event: module 1, Cable plugged":                                                      "",
		"debug: BUG: a program wrote this":                                                                                        "",
		"nvidia-peermem loaded":                                                                                                   "",
	} {
		got := ""
		l, _, err := Parse([]byte("[   12.500000] " + line + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Events {
			got += strings.TrimSpace(e.Kind + " " + string(e.Level) + " " + e.Bus)
			if e.Meaning == "" || e.Action == "" && e.Level != Notice {
				t.Errorf("%q: %+v", line, e)
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
