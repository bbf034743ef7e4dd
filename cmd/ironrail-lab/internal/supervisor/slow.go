// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// slow makes the disks and the CPU of a machine as slow as its faults say; what is not limited
// is let go.
func (m *machine) slow(ctx context.Context, v *vm, f Faults) error {
	err := v.throttle(ctx, f.DiskRate)
	if m.limitCPU != nil && (f.CPUShare > 0 || v.limited) {
		v.limited = true
		err = errors.Join(err, m.limitCPU(v.cmd.Process.Pid, m.Name, f.CPUShare))
	}
	return err
}

// throttle bounds what each disk is read, bytes a second; 0: nothing bounds it.
func (v *vm) throttle(ctx context.Context, rate int64) error {
	var devices []struct {
		Device string `json:"device"`
	}
	if err := v.execute(ctx, "query-blockstats", nil, &devices); err != nil {
		return err
	}
	for _, d := range devices {
		if len(d.Device) < 2 || d.Device[0] != 'd' { // d0, d1, ...: others are flash of the firmware
			continue
		}
		args := map[string]any{"device": d.Device, "bps": 0, "bps_rd": rate, "bps_wr": 0, "iops": 0, "iops_rd": 0, "iops_wr": 0}
		if err := v.execute(ctx, "block_set_io_throttle", args, nil); err != nil {
			return err
		}
	}
	return nil
}

const (
	groups = "/sys/fs/cgroup"
	period = 100_000 // microseconds in which the time of a group is counted
)

// cpuGroups returns the folder of the groups that share CPUs, and whether they are of version 2.
// ip netns exec has mounted a /sys of its own for the lab, which shows none: they are mounted
// there, and seen by the lab alone.
func cpuGroups() (dir string, second bool, err error) {
	list, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false, err
	}
	dir, kind, together := groups, "cgroup2", cpuControllers(string(list))
	if together != "" {
		kind = "cgroup"
		if _, err := os.Stat(filepath.Join(groups, "cpu", "cgroup.procs")); err == nil {
			return filepath.Join(groups, "cpu"), false, nil
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
		if err := unix.Mount("none", dir, kind, 0, together); err != nil {
			return "", false, fmt.Errorf("mount %s at %s: %w", kind, dir, err)
		}
	}
	return dir, kind == "cgroup2", nil
}

// cpuControllers are those of version 1 that are in one hierarchy with that of CPUs, by a file
// as of cgroups(7); "": there is none, and groups are of version 2.
func cpuControllers(list string) string {
	for line := range strings.Lines(list) {
		if f := strings.Split(line, ":"); len(f) == 3 && slices.Contains(strings.Split(f[1], ","), "cpu") {
			return f[1]
		}
	}
	return ""
}

// ended is the percentage for a process that has ended: its group goes with it.
const ended = -1

// limitCPU lets a process have so many percent of a CPU, by a control group of its own; 0
// takes that away. Groups of both versions are known (Documentation/admin-guide/cgroup-v2.rst,
// cgroup-v1 and scheduler/sched-bwc.rst of Linux).
func limitCPU(pid int, machine string, percent int) error {
	top, second, err := cpuGroups()
	if err != nil {
		return fmt.Errorf("CPU of %s: %w", machine, err)
	}
	type setting struct{ file, value string }
	dir, quota := filepath.Join(top, "ironrail-lab-"+strconv.Itoa(pid)), percent*period/100
	if percent == ended {
		return os.Remove(dir)
	}
	settings := []setting{{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", strconv.Itoa(quota)}}
	if percent == 0 {
		settings[1].value = "-1"
	}
	if second {
		settings = []setting{{"cpu.max", fmt.Sprintf("%d %d", quota, period)}}
		if percent == 0 {
			settings[0].value = fmt.Sprintf("max %d", period)
		}
		if err := os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), []byte("+cpu"), 0o600); err != nil {
			return fmt.Errorf("CPU of %s: %w", machine, err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("CPU of %s: %w", machine, err)
	}
	for _, s := range append(settings, setting{"cgroup.procs", strconv.Itoa(pid)}) {
		if err := os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0o600); err != nil {
			return fmt.Errorf("CPU of %s: %w", machine, err)
		}
	}
	return nil
}
