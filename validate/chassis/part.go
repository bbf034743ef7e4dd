// SPDX-License-Identifier: Apache-2.0

package chassis

// PartKind is what a part of a chassis is.
type PartKind string

// The parts of a chassis that are judged.
const (
	Supply PartKind = "power supply"
	Fan    PartKind = "fan"
	Inlet  PartKind = "inlet temperature"
)

// Part is how a BMC finds one part of the chassis.
type Part struct {
	Kind   PartKind
	Name   string
	Absent bool // the slot is empty
	// Failed says that the part itself has failed or is about to; NoInput, that a supply
	// which may be good has no mains.
	Failed, NoInput bool
	Message         string // the BMC's words for it
	// Reading and Limit are of a temperature, in degrees Celsius; nil: not told.
	Reading, Limit *float64
	// Speed is that of a fan, revolutions a minute, or percent of its most where the BMC tells that
	// alone; nil: not told.
	Speed *float64
}

// LogEntry is one record of a BMC's event log.
type LogEntry struct {
	ID       string
	Severity string // OK, Warning, Critical
	Message  string
	Sensor   string // its type; empty: the BMC does not report
}
