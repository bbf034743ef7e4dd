package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// Chassis is what a node's BMC says of what is around its mainboard.
type Chassis struct {
	Parts []Part
	Log   []LogEntry // entries since the bring-up began, the oldest first
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

// JudgeChassis returns the parts that do not pass, and sentences about what is
// worth knowing and no fault.
func JudgeChassis(h *inventory.Hardware, c Chassis) ([]Fault, []string) {
	j := judgeChassis(h, c)
	return j.faults, append(slices.Clone(c.Gaps), j.notes...)
}

// ChassisOutcomes are what the gates of the chassis made of it.
func ChassisOutcomes(h *inventory.Hardware, c Chassis) []Outcome {
	return judgeChassis(h, c).chassisOutcomes(c)
}

func judgeChassis(h *inventory.Hardware, c Chassis) *judge {
	j := &judge{hardware: h, names: map[string]string{}, at: map[string]int{}}
	j.supplies(c)
	for _, p := range c.Parts {
		switch {
		case !p.Bad:
		case p.Kind == Fan:
			j.fail("fan "+p.Name, doFan, "BMC: "+p.Name+": "+p.Says, "the BMC finds it failed (%s)", p.Says)
		case p.Kind == Inlet && p.Limit != nil:
			j.fail("inlet air", doInlet, fmt.Sprintf("BMC: %s: %g degrees Celsius, limit %g", p.Name, *p.Reading, *p.Limit), "it is %g degrees Celsius, and the limit is %g", *p.Reading, *p.Limit)
		case p.Kind == Inlet:
			j.fail("inlet air", doInlet, fmt.Sprintf("BMC: %s: %g degrees Celsius: %s", p.Name, *p.Reading, p.Says), "it is %g degrees Celsius, and the BMC warns of it", *p.Reading)
		}
	}
	j.log(c)
	return j
}

// supplies holds power supplies against being there, well and fed.
func (j *judge) supplies(c Chassis) {
	present, told := 0, 0
	var empty []string
	for _, p := range c.Parts {
		if p.Kind != Supply {
			continue
		}
		told++
		if p.Absent {
			empty = append(empty, p.Name)
			continue
		}
		present++
		part, evidence := "power supply "+p.Name, "BMC: "+p.Name+": "+p.Says
		switch {
		case p.Bad:
			j.fail(part, doSupply, evidence, "it has failed, by its BMC (%s)", p.Says)
		case p.Dark && c.Watched:
			j.note("%s has no mains; its PDU is looked at by itself", part)
		case p.Dark:
			j.fail(part, doMains, evidence, "it has no mains: the node has lost its redundancy")
		}
	}
	want := j.hardware.Power.Supplies
	switch {
	case told == 0 || want == 0 || present >= want:
	case len(empty) > 0:
		j.fail("power supplies", doSupply, "BMC: empty: "+strings.Join(empty, ", "), "%d of %d are there", present, want)
	default:
		j.note("the BMC tells of %d power supplies, and hardware.%s has %d", present, j.hardware.Name, want)
	}
}

// ordinary are words of entries that a bring-up itself causes, in the sensor's type
// or the text: power that was switched, boots, an open lid, the log itself.
var ordinary = []string{"power unit", "boot", "operating system", "os stop", "os critical stop", "physical security", "intrusion", "button", "session", "event log", "watchdog",
	"version change", "acpi", "firmware progress", "ac lost", "redundancy", "deassert", "de-assert", "restored", "regained", "cleared", "returned to", "lan leash"}

// unfed are words of entries about a supply whose mains went away: how it is now is
// asked, since who switches an outlet causes them.
var unfed = []string{"input lost", "input is lost", "loss of input", "lost input", "no input", "input power loss", "unplugged", "out-of-range", "input out of range"}

// log takes the critical entries, by the type of their sensor. What also a part
// says is evidence for it.
func (j *judge) log(c Chassis) {
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
			j.note("the BMC's event log has it that a power supply lost its mains for a while: %s", e.Message)
		case supply && j.failedSupply(line):
		default:
			j.fail("event log: "+about, doLog, line, "new critical entry since the bring-up began: %s", e.Message)
		}
	}
}

// failedSupply adds a line to the evidence of a supply that has failed.
func (j *judge) failedSupply(line string) bool {
	for i, f := range j.faults {
		if strings.HasPrefix(f.Part, "power suppl") {
			j.faults[i].Evidence = append(f.Evidence, line)
			return true
		}
	}
	return false
}

// chassisOutcomes sums up what the BMC told of the chassis.
func (j *judge) chassisOutcomes(c Chassis) (list []Outcome) {
	count := func(like Part) (n int) {
		for _, p := range c.Parts {
			if p.Kind == like.Kind && !p.Absent {
				n++
			}
		}
		return n
	}
	add := func(gate, part string, what sight) {
		var failed []string
		for _, f := range j.faults {
			if strings.HasPrefix(f.Part, part) {
				failed = append(failed, f.Cause)
			}
		}
		j.gate = gate
		list = append(list, j.outcome(what, failed, nil))
	}
	of := func(like Part, what string) sight {
		if n := count(like); n > 0 {
			return saw("%d %s, by the BMC", n, what)
		}
		return sight{gap: "the BMC tells of no " + what}
	}
	add(PowerSupplies, "power suppl", of(Part{Kind: Supply}, "power supplies"))
	add(Fans, "fan ", of(Part{Kind: Fan}, "fans"))
	add(InletAir, "inlet air", of(Part{Kind: Inlet}, "sensors of the air that comes in"))
	log := saw("entries of the BMC's event log since the bring-up began: %d", len(c.Log))
	if !c.Logged {
		log = sight{gap: "the BMC's event log was not read"}
	}
	add(BMCLog, "event log", log)
	return list
}
