// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"strings"
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	at := func(id, text string, second int) LogEntry {
		return LogEntry{ID: id, Message: text, Created: time.Unix(int64(second), 0)}
	}
	log := []LogEntry{at("1", "on", 10), at("2", "fan", 20), at("3", "fan", 20), at("4", "off", 30)}
	for _, c := range []struct {
		name string
		mark LogMark
		want string
	}{
		{"from the beginning", LogMark{}, "1 2 3 4"},
		{"in the middle", markOf(log[0]), "2 3 4"},
		{"the first of two that are alike", markOf(log[1]), "3 4"},
		{"the second of two that are alike", markOf(log[2]), "4"},
		{"at the end", markOf(log[3]), ""},
		{"numbered anew", LogMark{ID: "9", Message: "on", Created: time.Unix(10, 0)}, "2 3 4"},
		{"emptied since", LogMark{ID: "1", Message: "gone", Created: time.Unix(1, 0)}, "1 2 3 4"},
	} {
		var got []string
		for _, e := range after(log, c.mark) {
			got = append(got, e.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSupplyOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		states    []uint8
		bad, dark bool
	}{
		{"present", []uint8{0}, false, false}, {"failed", []uint8{0, 1}, true, false}, {"about to fail", []uint8{0, 2}, true, false},
		{"no input", []uint8{0, 3}, false, true}, {"nothing is told", nil, false, false},
	} {
		if p := supplyOf("PSU1 Status ", c.states, nil); p.Failed != c.bad || p.NoInput != c.dark || p.Name != "PSU1 Status" {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}

// TestPeerEventLog: the clock and a full event log of ipmi_sim, with ipmitool as judge.
func TestPeerEventLog(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	s.Kill()
	s.Put("sim.emu", strings.Replace(s.Get("sim.emu")+"\n", "sel_enable 0x20 1000", "sel_enable 0x20 3", 1))
	s.Run()
	drv := open(t, s.target()).drv
	clk, space, log := drv.(Timekeeper), drv.(LogSpace), drv.(EventLog)
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	if out, err := clk.SetTime(t.Context(), at); err != nil || out.Verdict != Verified {
		t.Errorf("the clock: %+v, %v", out, err)
	}
	if got := s.ipmitool("sel", "time", "get"); !strings.Contains(got, "/31 04:05:") {
		t.Errorf("ipmitool says %q", got)
	}
	if full, err := space.LogFull(t.Context()); err != nil || full != "" {
		t.Errorf("an empty log: %q, %v", full, err)
	}
	for range 3 { // Add SEL Entry: a temperature that is critically high
		s.ipmitool(strings.Fields("raw 0x0a 0x44 0 0 2 0 0 0 0 0x20 0 4 1 0x30 1 9 0xff 0xff")...)
	}
	if full, err := space.LogFull(t.Context()); err != nil || !strings.HasPrefix(full, "3 entries") {
		t.Errorf("a full log: %q, %v", full, err)
	}
	if out, err := log.ClearEventLog(t.Context()); err != nil || out.Verdict != Verified {
		t.Errorf("cleared: %+v, %v", out, err)
	}
	if full, err := space.LogFull(t.Context()); err != nil || full != "" {
		t.Errorf("a cleared log: %q, %v", full, err)
	}
}
