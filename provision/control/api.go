package control

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/provision/apply"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/state"
)

// Backend is what an owner answers with. Its methods are called concurrently
// and end soon after ctx is done. Their errors reach the client with kind and
// action.
type Backend interface {
	Status(ctx context.Context) (Status, error)
	Why(ctx context.Context, node string) (Why, error)
	Hold(ctx context.Context, node string, h HoldRequest) error
	Release(ctx context.Context, node string, h HoldRequest) error
	Power(ctx context.Context) ([]Power, error)
	Drain(ctx context.Context) error
	// Events returns a subscription from event from on; 0 is the oldest kept.
	Events(from uint64) *event.Subscription
}

// Status is what the owner does and where every node stands.
type Status struct {
	Owner Identity      `json:"owner"`
	Run   *apply.Status `json:"run,omitempty"` // nil while nothing is applied
	Nodes []state.Node  `json:"nodes"`         // that the state knows, by name
}

// Why is one node's whole story.
type Why struct {
	Node     state.Node         `json:"node"`
	Steps    []state.Step       `json:"steps"`            // of this node, the last end of each, oldest first
	Effects  []state.Effect     `json:"effects"`          // of those steps, oldest first
	Skipped  []state.Record     `json:"skipped"`          // of the last run
	Active   []apply.StepStatus `json:"active,omitempty"` // under way now
	Evidence []event.Event      `json:"evidence"`         // what it was seen to do, oldest first
}

// HoldRequest says who holds or releases a node, and why.
type HoldRequest struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// Power is the power of one node as its BMC says it.
type Power struct {
	Node  string    `json:"node"`
	State string    `json:"state"` // on, off; empty with an Error
	Error string    `json:"error,omitempty"`
	At    time.Time `json:"at"`
}

// Version says what the owner is.
type Version struct {
	Version string `json:"version"` // of the program
	API     int    `json:"api"`     // of this interface
}

// API is the version of the control interface. Fields are only ever added.
const API = 1
