// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
)

// startTime is how long after a step began its BMC may still show the power as it
// was.
const startTime = time.Minute

// looked reads what the BMC says now into the answer about a step that runs; true
// when that is the cause.
func (s question) looked(a *Answer, x apply.StepStatus) bool {
	l := s.Look
	if l == nil {
		return false
	}
	a.Evidence = append(a.Evidence, lookText(*l))
	a.Evidence = append(a.Evidence, l.Outlets...)
	for _, e := range unusualEntries(l.Log, x.Since) {
		a.Evidence = append(a.Evidence, "event log: "+e.Text)
	}
	switch {
	case x.Stage == stageBMC && l.Power == "" && len(l.Errors) > 0:
		a.Cause = "its BMC" + s.bmcAt() + " cannot be read: " + l.Errors[0]
		a.Action = "Check the BMC's network cable and its address, and that the node has mains." + s.untilThen(x)
		return true
	case x.Stage == stageInstall:
		return s.explainBoot(a, x)
	}
	return false
}

// explainBoot reads into the answer what the BMC says of a node that is to boot for its
// install; true when that is the cause.
func (s question) explainBoot(a *Answer, x apply.StepStatus) bool {
	l := s.Look
	netboots := strings.HasSuffix(string(x.ID), netbootStep)
	switch {
	case l.Progress == "SetupEntered":
		a.Cause = "its firmware stands in its setup page and waits for a person"
		a.Action = "Leave the setup on its console: an error that has to be confirmed, or a person who works on it." + s.untilThen(x)
	case l.Power == "" && l.Answered && len(l.Errors) > 0:
		a.Cause = "its BMC" + s.bmcAt() + " answers, and cannot be read: " + l.Errors[0]
		a.Action = cmp.Or(l.Do, "Look at the BMC: its log-in, its certificate, its state.") + s.untilThen(x)
	case l.Power == "" && len(l.Errors) > 0:
		a.Cause = "its BMC" + s.bmcAt() + " cannot be read: the node may be without mains, or its BMC off the network"
		a.Action = "Look at the node's power supplies and at the BMC's network port." + s.untilThen(x)
	case netboots && l.Power == "off" && s.now.Sub(x.Since) > startTime:
		a.Cause = "its power is off, though the run switched it on"
		a.Action = "Look at the node's power supplies, its outlets and the BMC's event log." + s.untilThen(x)
	case netboots && runsSystem(l.Progress) && s.seenSince(x.Since) == 0:
		a.Cause = "it has booted something else than the network: the BMC says " + l.Progress + ", and the boot services saw nothing of it"
		a.Action = "Look at its boot order, and that network boot is enabled for its boot NIC." + s.untilThen(x)
	default:
		return false
	}
	return true
}

// seenSince counts what the boot services saw of the node.
func (s question) seenSince(t time.Time) (n int) {
	for _, e := range s.Evidence {
		if !e.Time.Before(t) {
			n++
		}
	}
	return n
}

// runsSystem reports whether a BMC says that an operating system was started
// (Redfish ComputerSystem.BootProgress.LastState).
func runsSystem(progress string) bool {
	return progress == "OSRunning" || progress == "OSBootStarted"
}

// unusualEntries are the entries of a hardware log since a time that are more than news.
func unusualEntries(log []control.LogEntry, since time.Time) (out []control.LogEntry) {
	for _, e := range log {
		if e.Severity != "OK" && e.Severity != "" && (e.Time.IsZero() || !e.Time.Before(since)) {
			out = append(out, e)
		}
	}
	return out
}

// lookText says in a clause what a BMC said.
func lookText(l control.Look) string {
	var parts []string
	if l.Power != "" {
		parts = append(parts, "the power is "+l.Power)
	}
	if l.Progress != "" && l.Progress != "None" {
		parts = append(parts, "the firmware "+firmwareProgressText(l.Progress))
	}
	if len(parts) == 0 {
		return strings.TrimSuffix("its BMC cannot be read: "+firstError(&l), ": ")
	}
	return strings.Join(parts, ", ")
}

// stages of a boot in words (Redfish ComputerSystem, BootProgress.LastState).
var progressWords = map[string]string{
	"PrimaryProcessorInitializationStarted":   "is in its self-test (first processor)",
	"BusInitializationStarted":                "is in its self-test (buses)",
	"MemoryInitializationStarted":             "is in its self-test (memory)",
	"SecondaryProcessorInitializationStarted": "is in its self-test (processors)",
	"PCIResourceConfigStarted":                "is in its self-test (PCI devices)",
	"SystemHardwareInitializationComplete":    "has ended its self-test",
	"SetupEntered":                            "stands in its setup page",
	"OSBootStarted":                           "has started a boot loader",
	"OSRunning":                               "has handed over to an operating system",
	"InPost":                                  "is in its self-test",
	"InPostDiscoveryComplete":                 "is in its self-test (devices found)",
	"FinishedPost":                            "has ended its self-test",
}

// firmwareProgressText says how far a firmware is; words that are not known are quoted.
func firmwareProgressText(word string) string {
	if text, ok := progressWords[word]; ok {
		return text
	}
	return "is at " + word
}

// inSelfTest reports whether a BMC says that the firmware has not ended its
// self-test.
func inSelfTest(word string) bool {
	return strings.HasPrefix(firmwareProgressText(word), "is in its self-test")
}

// firstError is why a BMC could not be read.
func firstError(l *control.Look) string {
	if len(l.Errors) == 0 {
		return ""
	}
	return l.Errors[0]
}

// ShouldAskBMC reports whether its BMC may know more about a node that stands so.
func (a Answer) ShouldAskBMC() bool {
	switch a.Status {
	case Working, Late, Quarantined, Cut, Skipped:
		return true
	}
	return false
}
