// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

const (
	guestReset    = `{"event":"SHUTDOWN","data":{"guest":true,"reason":"guest-reset"}}`
	guestShutdown = `{"event":"SHUTDOWN","data":{"guest":true,"reason":"guest-shutdown"}}`
)

// netFirst and diskFirst are how QEMU's arguments show the order.
const (
	netFirst  = "bootindex=0,addr=0x3"
	diskFirst = "bootindex=2,addr=0x3"
)

func TestAnswersBeforeItActs(t *testing.T) {
	t.Parallel()
	b := newBench(t) // nobody runs the queue
	if got := b.do("get power boot"); got != "power:0\nboot:none\n" {
		t.Errorf("at first %q", got)
	}
	b.do("set boot pxe power 1")
	if got := b.do("get power"); got != "power:1\n" {
		t.Errorf("after power on %q", got)
	}
	b.do("set power 0")
	if got := b.do("get power boot"); got != "power:0\nboot:none\n" {
		t.Errorf("after power off %q", got)
	}
}

func TestBootOnceOverResets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	end := b.runs()
	b.do("set boot pxe")
	b.do("set power 1")
	steps := []struct {
		name, event, command, want string
	}{
		{"power on with pxe", "", "", netFirst},
		{"the guest reboots", guestReset, "", diskFirst},
		{"and again", guestReset, "", diskFirst},
		{"reset without a boot device", "", "set reset 1", diskFirst},
		{"reset with pxe", "", "set boot pxe reset 1", netFirst},
		{"the guest reboots", guestReset, "", diskFirst},
	}
	var q *fakeQEMU
	for _, s := range steps {
		if s.event != "" {
			q.says(t, s.event)
		}
		if s.command != "" {
			b.do(s.command)
		}
		if q = b.next(); !strings.Contains(q.args, s.want) {
			t.Fatalf("%s: no %s in %s", s.name, s.want, q.args)
		}
	}
	q.says(t, guestShutdown)
	b.waitOff()
	got := *CountEffects(end())["n1"]
	if got.Starts != 1 || got.Resets[ByGuest] != 3 || got.Resets[ByBMC] != 2 || got.Stops[ByGuest] != 1 || got.Boots.Net != 2 || got.Boots.Disk != 4 {
		t.Errorf("counts %+v", got)
	}
	if got.Disk.WrittenBytes != 6*4096 || got.Disk.Writes != 12 {
		t.Errorf("disk counts %+v, want those of six runs", got.Disk)
	}
}

func TestABootDeviceHoldsForTheGuestsOwnReboot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runs()
	b.do("set power 1")
	q := b.next()
	b.do("set boot pxe")
	q.says(t, guestReset)
	if q = b.next(); !strings.Contains(q.args, netFirst) {
		t.Errorf("booted by %s", q.args)
	}
}

func TestCycleAndRepeatedCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	end := b.runs()
	b.do("set power 1")
	b.do("set power 1") // sent again: nothing happens
	first := b.next()
	b.do("set power 0")
	b.do("set power 0")
	b.do("set power 1")
	second := b.next()
	if second.cmd.Process.Pid == first.cmd.Process.Pid {
		t.Error("the machine was not switched off in between")
	}
	second.heard(t, "cont")
	b.do("set power 0")
	second.heard(t, "quit")
	got := *CountEffects(end())["n1"]
	if got.Starts != 2 || got.Stops[ByBMC] != 2 || got.Cycles != 1 || got.Commands["power on"] != 3 || got.Commands["power off"] != 3 {
		t.Errorf("counts %+v", got)
	}
}

func TestGuestSwitchesOffWhilePowerOnWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runs()
	b.do("set power 1")
	q := b.next()
	q.says(t, guestShutdown)
	b.do("set power 0")
	b.do("set power 1")
	b.next()
	if got := b.do("get power"); got != "power:1\n" {
		t.Errorf("power %q, want the one asked for last", got)
	}
}

func TestCrashReadsAsOff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	end := b.runs()
	b.do("set power 1")
	q := b.next()
	q.heard(t, "cont")
	if err := q.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	b.waitOff()
	if got := CountEffects(end())["n1"]; got.Stops[ByCrash] != 1 {
		t.Errorf("counts %+v", *got)
	}
}

func TestFailedStartReadsAsOff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.broken = true
	b.runs()
	b.do("set power 1")
	b.waitOff()
}

func TestUnplugged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runs()
	s := &Supervisor{lab: Lab{Dir: t.TempDir()}, machines: []*machine{b.machine}}
	fault := func(name string) {
		if err := s.fault(t.Context(), &FaultRequest{Name: name, Machine: "n1"}); err != nil {
			t.Fatal(err)
		}
	}
	fault("unplug")
	fault("missing-nic")
	b.do("set power 1")
	q := b.next()
	q.heard(t, `set_link {"name":"nic0","up":false}`)
	q.heard(t, "cont")
	if strings.Contains(q.args, "n1-rail") {
		t.Error("the rail NIC is there")
	}
	fault("clear")
	q.heard(t, `set_link {"name":"nic0","up":true}`)
	again := &Supervisor{lab: s.lab, machines: []*machine{b.machine}}
	if err := again.restoreFaults(t.Context()); err != nil || b.fault() != (Faults{}) {
		t.Errorf("after clear: %+v, error %v", b.fault(), err)
	}
}

// TestSlow: a disk and a CPU are slow from the fault on, also after the next power on, until it
// is cleared.
func TestSlow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	shares := make(chan int, 8)
	b.limitCPU = func(pid int, machine string, percent int) error {
		if pid <= 0 || machine != "n1" {
			t.Errorf("process %d of %s", pid, machine)
		}
		shares <- percent
		return nil
	}
	b.runs()
	s := &Supervisor{lab: Lab{Dir: t.TempDir()}, machines: []*machine{b.machine}}
	fault := func(name string) {
		if err := s.fault(t.Context(), &FaultRequest{Name: name, Machine: "n1"}); err != nil {
			t.Fatal(err)
		}
	}
	throttled := func(rate int) string {
		return fmt.Sprintf(`block_set_io_throttle {"bps":0,"bps_rd":%d,"bps_wr":0,"device":"d0","iops":0,"iops_rd":0,"iops_wr":0}`, rate)
	}
	fault("slow-cpu")
	fault("slow-disk")
	b.do("set power 1")
	q := b.next()
	q.heard(t, throttled(slowDisk))
	q.heard(t, "cont")
	if got := <-shares; got != slowCPU {
		t.Errorf("%d percent", got)
	}
	fault("clear")
	q.heard(t, throttled(0))
	if got := <-shares; got != 0 {
		t.Errorf("%d percent once it is cleared", got)
	}
}

func TestCPUControllers(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"0::/init.scope\n":                                 "",
		"3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n0::/\n":         "cpu",
		"12:pids:/a:b\n4:cpu,cpuacct:/user.slice\n0::/x\n": "cpu,cpuacct",
	} {
		if got := cpuControllers(list); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

func TestFaultsSurviveTheSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := newBench(t), newBench(t)
	s := &Supervisor{lab: Lab{Dir: dir}, machines: []*machine{first.machine}}
	if err := s.fault(t.Context(), &FaultRequest{Name: "unplug", Machine: "n1"}); err != nil {
		t.Fatal(err)
	}
	s = &Supervisor{lab: Lab{Dir: dir}, machines: []*machine{second.machine}}
	if err := s.restoreFaults(t.Context()); err != nil || !second.fault().Unplugged {
		t.Errorf("faults %+v, error %v", second.fault(), err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		words string
		kind  errkind.Kind
	}{
		{"set reset 1", errkind.Refused}, // power is off
		{"set fan 1", errkind.Unsupported},
		{"set power", errkind.Unsupported},
		{"get fan", errkind.Unsupported},
		{"put power 1", errkind.Unsupported},
		{"get", errkind.Unsupported},
		{"", errkind.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.words, func(t *testing.T) {
			t.Parallel()
			if _, err := newBench(t).chassis(strings.Fields(tt.words)); errkind.Of(err) != tt.kind || err == nil {
				t.Errorf("error %v, want kind %s", err, tt.kind)
			}
		})
	}
}

func TestFullQueueIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.do("set power 1")
	var err error
	for range queueLength + 1 {
		_, err = b.chassis([]string{"set", "reset", "1"})
	}
	if errkind.Of(err) != errkind.Refused {
		t.Errorf("error %v", err)
	}
}
