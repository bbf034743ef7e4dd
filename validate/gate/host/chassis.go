// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// Chassis is what a node's BMC says of what is around its mainboard.
type Chassis struct {
	Parts []chassis.Part
	Log   []chassis.LogEntry // entries since the bring-up began, the oldest first
	// Watched says that the PDUs behind the node are read by themselves: supplies
	// without mains are then theirs to explain.
	Watched bool
	Logged  bool     // the event log was read
	Gaps    []string // sentences: what could not be looked at
}

// The gates of the chassis, by their names in reports.
const (
	PowerSupplies = "power-supplies"
	Fans          = "fans"
	InletAir      = "inlet-air"
	BMCLog        = "bmc-log"
)

const (
	doSupply = "Exchange the power supply, or put it in; then run `ironrail apply` again."
	doMains  = "Look at its cord, the outlet that it is plugged into, and the PDU's breaker; then run `ironrail apply` again."
	doFan    = "Exchange the fan; until then the node throttles or switches itself off under load."
	doInlet  = "Look at the cooling of the rack: blanking panels, doors, the aisle and the unit below it."
	doLog    = "Read the BMC's event log (ipmitool sel elist, or its page), repair what it names, and run `ironrail apply` again."
)

// The parts of a chassis that cool it.
const (
	inletPart = "inlet air"
	fanPart   = "fan " // and its name
)

// Cools reports whether a part that was found bad is one that cools the whole node.
func Cools(f judge.Fault) bool { return f.Part == inletPart || strings.HasPrefix(f.Part, fanPart) }

// JudgeChassis returns the parts that do not pass, and sentences about what is
// worth knowing and no fault.
func JudgeChassis(h *inventory.Hardware, c Chassis) ([]judge.Fault, []string) {
	j := judgeChassis(h, c)
	return j.Faults, append(slices.Clone(c.Gaps), j.Notes...)
}

// ChassisOutcomes are what the gates of the chassis made of it.
func ChassisOutcomes(h *inventory.Hardware, c Chassis) []judge.Outcome {
	return chassisOutcomes(judgeChassis(h, c), c)
}

func judgeChassis(h *inventory.Hardware, c Chassis) *judge.Node {
	j := &judge.Node{Hardware: h, Names: map[string]string{}, At: map[string]int{}}
	checkSupplies(j, c)
	noteStill(j, c)
	for _, p := range c.Parts {
		switch {
		case !p.Failed:
		case p.Kind == chassis.Fan:
			j.Fail(fanPart+p.Name, doFan, "BMC: "+p.Name+": "+p.Message, "the BMC finds it failed (%s)", p.Message)
		case p.Kind == chassis.Inlet && p.Limit != nil:
			j.Fail(inletPart, doInlet, fmt.Sprintf("BMC: %s: %g degrees Celsius, limit %g", p.Name, *p.Reading, *p.Limit), "it is %g degrees Celsius, and the limit is %g", *p.Reading, *p.Limit)
		case p.Kind == chassis.Inlet:
			j.Fail(inletPart, doInlet, fmt.Sprintf("BMC: %s: %g degrees Celsius: %s", p.Name, *p.Reading, p.Message), "it is %g degrees Celsius, and the BMC warns of it", *p.Reading)
		}
	}
	checkLog(j, c)
	return j
}

// noteStill notes fans that stand still while others of the chassis turn, and that the BMC does not
// find failed. Some BMCs list places without a fan so: whether it is this node's, the comparison of the
// role says, which counts fans that turn.
func noteStill(j *judge.Node, c Chassis) {
	turning := slices.ContainsFunc(c.Parts, func(p chassis.Part) bool { return p.Kind == chassis.Fan && p.Speed != nil && *p.Speed > 0 })
	for _, p := range c.Parts {
		if turning && p.Kind == chassis.Fan && !p.Absent && !p.Failed && p.Speed != nil && *p.Speed <= 0 {
			j.Note("fan %s stands still, by the BMC, which finds no fault with it, and others turn", p.Name)
		}
	}
}

// checkSupplies holds power supplies against being there, well and fed.
func checkSupplies(j *judge.Node, c Chassis) {
	present, reported := 0, 0
	var empty []string
	for _, p := range c.Parts {
		if p.Kind != chassis.Supply {
			continue
		}
		reported++
		if p.Absent {
			empty = append(empty, p.Name)
			continue
		}
		present++
		part, evidence := "power supply "+p.Name, "BMC: "+p.Name+": "+p.Message
		switch {
		case p.Failed:
			j.Fail(part, doSupply, evidence, "it has failed, by its BMC (%s)", p.Message)
		case p.NoInput && c.Watched:
			j.Note("%s has no mains; its PDU is looked at by itself", part)
		case p.NoInput:
			j.Fail(part, doMains, evidence, "it has no mains: the node has lost its redundancy")
		}
	}
	want := j.Hardware.Power.Supplies
	switch {
	case reported == 0 || want == 0 || present >= want:
	case len(empty) > 0:
		j.Fail("power supplies", doSupply, "BMC: empty: "+strings.Join(empty, ", "), "%d of %d are there", present, want)
	default:
		j.Note("the BMC tells of %d power supplies, and hardware.%s has %d", present, j.Hardware.Name, want)
	}
}

// ordinary are words of entries that a bring-up itself causes, in the sensor's type
// or the text: power that was switched, boots, an open lid, the log itself.
var ordinary = []string{"power unit", "boot", "operating system", "os stop", "os critical stop", "physical security", "intrusion", "button", "session", "event log", "watchdog",
	"version change", "acpi", "firmware progress", "ac lost", "redundancy", "deassert", "de-assert", "restored", "regained", "cleared", "returned to", "lan leash"}

// unfed are words of entries about a supply whose mains went away: how it is now is
// asked, since who switches an outlet causes them.
var unfed = []string{"input lost", "input is lost", "loss of input", "lost input", "no input", "input power loss", "unplugged", "out-of-range", "input out of range"}

// checkLog takes the critical entries, by the type of their sensor. What also a part
// says is evidence for it.
func checkLog(j *judge.Node, c Chassis) {
	for _, e := range c.Log {
		if !strings.EqualFold(e.Severity, "Critical") {
			continue
		}
		text := strings.ToLower(e.Sensor + " " + e.Message)
		is := func(w string) bool { return strings.Contains(text, w) }
		about := e.Sensor
		if about == "" {
			about = "a part that it does not name"
		}
		line := fmt.Sprintf("event log %s: %s %s", e.ID, e.Sensor, e.Message)
		switch supply := strings.Contains(text, "power supply") || strings.Contains(text, "psu"); {
		case slices.ContainsFunc(ordinary, is):
		case supply && slices.ContainsFunc(unfed, is):
			j.Note("the BMC's event log has it that a power supply lost its mains for a while: %s", e.Message)
		case supply && alreadyFailed(j, "power suppl", line),
			strings.Contains(text, "fan") && alreadyFailed(j, fanPart, line),
			strings.Contains(text, "temp") && alreadyFailed(j, inletPart, line):
		default:
			j.Fail("event log: "+about, doLog, line, "new critical entry since the bring-up began: %s", e.Message)
		}
	}
}

// alreadyFailed adds a line to the evidence of a part that was found bad already.
func alreadyFailed(j *judge.Node, part, line string) bool {
	for i, f := range j.Faults {
		if strings.HasPrefix(f.Part, part) {
			j.Faults[i].Evidence = append(f.Evidence, line)
			return true
		}
	}
	return false
}

// chassisOutcomes sums up what the BMC told of the chassis.
func chassisOutcomes(j *judge.Node, c Chassis) (list []judge.Outcome) {
	count := func(like chassis.Part) (n int) {
		for _, p := range c.Parts {
			if p.Kind == like.Kind && !p.Absent {
				n++
			}
		}
		return n
	}
	add := func(gate, part string, what judge.Coverage) {
		var failed []string
		for _, f := range j.Faults {
			if strings.HasPrefix(f.Part, part) {
				failed = append(failed, f.Cause)
			}
		}
		j.Gate = gate
		list = append(list, j.Outcome(what, failed, nil))
	}
	of := func(like chassis.Part, what string) judge.Coverage {
		if n := count(like); n > 0 {
			return judge.Covered("%d %s, by the BMC", n, what)
		}
		return judge.Coverage{Missing: "the BMC tells of no " + what}
	}
	add(PowerSupplies, "power suppl", of(chassis.Part{Kind: chassis.Supply}, "power supplies"))
	add(Fans, "fan ", of(chassis.Part{Kind: chassis.Fan}, "fans"))
	add(InletAir, inletPart, of(chassis.Part{Kind: chassis.Inlet}, "sensors of the air that comes in"))
	log := judge.Covered("entries of the BMC's event log since the bring-up began: %d", len(c.Log))
	if !c.Logged {
		log = judge.Coverage{Missing: "the BMC's event log was not read"}
	}
	add(BMCLog, "event log", log)
	return list
}
