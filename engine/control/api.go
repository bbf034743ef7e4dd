// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// Backend is what an owner answers with. Its methods are called concurrently
// and end soon after ctx is done. Their errors reach the client with kind and
// action.
type Backend interface {
	Status(ctx context.Context) (Status, error)
	Why(ctx context.Context, node string) (Why, error)
	// Look asks the node's BMC, and its PDUs where they may tell more. What could not
	// be read is in the Look.
	Look(ctx context.Context, node string) (Look, error)
	Hold(ctx context.Context, node string, h HoldRequest) error
	Release(ctx context.Context, node string, h HoldRequest) error
	// AskBMCs asks the BMCs of nodes, all of them when none is named, at once. It gives each
	// answer to tell when it comes, one at a time, and returns all in the order of the
	// site.
	AskBMCs(ctx context.Context, q BMCQuestion, nodes []string, tell func(BMCAnswer)) ([]BMCAnswer, error)
	Drain(ctx context.Context) error
	// Events returns a subscription from event from on; 0 is the oldest kept.
	Events(from uint64) *event.Subscription
}

// Status is what the owner does and where every node stands.
type Status struct {
	Owner Identity      `json:"owner"`
	Run   *apply.Status `json:"run,omitempty"` // nil while nothing is applied
	Nodes []state.Node  `json:"nodes"`         // that the state knows, by name

	// Of the run: what the nodes wait for that nothing is done with now, and how long
	// the active steps take as a rule. Absent from owners of before.
	Waits map[string]apply.Waiting    `json:"waits,omitempty"`
	Paces map[plan.StepID]plan.Budget `json:"paces,omitempty"`

	// Serves says, of an owner that stays, what it does for nodes that boot while no run
	// is active, and what it waits for. Empty for others.
	Serves []string `json:"serves,omitempty"`
	// First is the number of the first event of Run, of an owner that stays.
	First uint64 `json:"first,omitempty"`
	// Last is the run that was begun last, of an owner that stays and has none.
	Last *state.Run `json:"last,omitempty"`
	// Skipped and Findings are what it left: what was not started of nodes, and what was found
	// about the site.
	Skipped  map[string][]state.Record `json:"skipped,omitempty"`
	Findings []stage.Finding           `json:"findings,omitempty"`

	// Notes is what the state knows of nodes and the site's files do not; see
	// Why.Notes.
	Notes map[string][]string `json:"notes,omitempty"`
}

// Why is one node's whole story.
type Why struct {
	Node     state.Node         `json:"node"`
	Steps    []state.Step       `json:"steps"`             // of this node, the last end of each, oldest first
	Effects  []state.Effect     `json:"effects"`           // of those steps, oldest first
	Journal  []state.Record     `json:"journal,omitempty"` // about this node, but facts and skips; the newest MostRecords, oldest first
	Skipped  []state.Record     `json:"skipped"`           // of the last run
	Active   []apply.StepStatus `json:"active,omitempty"`  // under way now
	Evidence []event.Event      `json:"evidence"`          // what it was seen to do, oldest first

	// Nil or empty where it is not known, and from owners of before.
	Place    *Place                      `json:"place,omitempty"`
	Paces    map[plan.StepID]plan.Budget `json:"paces,omitempty"` // of the active steps: how long they take as a rule
	Waiting  *apply.Waiting              `json:"waiting,omitempty"`
	Near     []stage.Finding             `json:"near,omitempty"`     // about what the node hangs on: its PDUs, its cables
	Last     *state.Run                  `json:"last,omitempty"`     // the run that was begun last
	Draining bool                        `json:"draining,omitempty"` // the run starts nothing new
	Idle     bool                        `json:"idle,omitempty"`     // no run is active
	Guess    *Guess                      `json:"guess,omitempty"`
	Alike    *SimilarNodes               `json:"alike,omitempty"`
	Look     *Look                       `json:"look,omitempty"`
	Console  *Console                    `json:"console,omitempty"` // of a step that waits for the node, or waited in vain
	Notes    []string                    `json:"notes,omitempty"`   // what the state knows and the site's files do not: a replaced chassis, a pin, parts that were bad elsewhere
}

// Place is where a node is and what it hangs on, from the site's files.
type Place struct {
	Rack     string   `json:"rack"`
	Unit     int      `json:"unit"`
	Role     string   `json:"role,omitempty"`
	Hardware string   `json:"hardware,omitempty"`
	Serial   string   `json:"serial,omitempty"`
	BMC      string   `json:"bmc,omitempty"`      // address
	Protocol string   `json:"protocol,omitempty"` // of the BMC
	PDUs     []string `json:"pdus,omitempty"`
	BootMAC  string   `json:"boot_mac,omitempty"`
	BootNIC  string   `json:"boot_nic,omitempty"` // mgmt/0; mgmt, where it has several ports
	Ports    []Port   `json:"ports,omitempty"`
}

// Port is one port of a node with the cable in it. No switch is asked: what is
// known of the far end is what the node heard last.
type Port struct {
	Port    string    `json:"port"`              // rail/3
	To      string    `json:"to"`                // switch and port as the files have it
	Heard   string    `json:"heard,omitempty"`   // by LLDP, when the node was inspected last
	HeardAt time.Time `json:"heard_at,omitzero"` // when that was
}

// Guess is what would be blamed if the node stayed as it is seen now.
type Guess struct {
	Cause  string `json:"cause"`
	Action string `json:"action"`
}

// SimilarNodes are other nodes that stand the same way.
type SimilarNodes struct {
	Nodes []string  `json:"nodes"` // without this one, in the order of the site
	First time.Time `json:"first,omitzero"`
	Text  string    `json:"text"` // a sentence: how many, since when, what they share
}

// Look is what a node's BMC and its PDUs say of it now.
type Look struct {
	At       time.Time  `json:"at"`
	Power    string     `json:"power,omitempty"`    // on, off
	Progress string     `json:"progress,omitempty"` // how far the firmware is, in the BMC's words
	Log      []LogEntry `json:"log,omitempty"`      // of the hardware's event log, the newest, oldest first
	Outlets  []string   `json:"outlets,omitempty"`  // what the PDUs say of its outlets
	Errors   []string   `json:"errors,omitempty"`   // of what could not be read
	Answered bool       `json:"answered,omitempty"` // the BMC answered, and the first error is what it, or a check of it, said
	Do       string     `json:"do,omitempty"`       // what to do about that; may be empty
	Sort     string     `json:"sort,omitempty"`     // which sort of trouble it is, or of silence; may be empty
}

// Console is the end of what a node printed on its serial console while a step
// waited for the node.
type Console struct {
	Step  plan.StepID `json:"step"`
	At    time.Time   `json:"at"`              // until when it was read
	Lines []string    `json:"lines"`           // the last of them, escaped, oldest first
	Ref   string      `json:"ref,omitempty"`   // evidence that holds more
	Error string      `json:"error,omitempty"` // why it is not read any more
}

// LogEntry is one record of a hardware event log.
type LogEntry struct {
	Time     time.Time `json:"time,omitzero"` // on the BMC's clock
	Severity string    `json:"severity"`
	Text     string    `json:"text"`
}

// MostRecords bounds Why.Journal.
const MostRecords = 200

// HoldRequest says who holds or releases a node, and why.
type HoldRequest struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// BMCQuestion is what BMCs are asked for.
type BMCQuestion struct {
	For  string `json:"for"`            // AskPower, AskLog or AskSensors
	Last int    `json:"last,omitempty"` // of a log: at most so many entries, the newest; 0: all
}

// What BMCs are asked for.
const (
	AskPower   = "power"
	AskLog     = "log"
	AskSensors = "sensors"
)

// Sensor is one reading of a BMC.
type Sensor struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"` // UCUM: W, Cel, RPM, %, V
}

// BMCAnswer is what the BMC of one node answered.
type BMCAnswer struct {
	Node    string     `json:"node"`
	State   string     `json:"state"`             // on, off; of AskPower, and empty with an error
	Log     []LogEntry `json:"log,omitempty"`     // the oldest first; of AskLog
	Sensors []Sensor   `json:"sensors,omitempty"` // in the order of the BMC; of AskSensors
	Error   string     `json:"error,omitempty"`
	At      time.Time  `json:"at"`
}

// Version says what the owner is.
type Version struct {
	Version string `json:"version"` // of the program
	API     int    `json:"api"`     // of this interface
}

// API is the version of the control interface. Fields are only ever added.
const API = 1
