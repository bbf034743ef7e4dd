// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Director is a Backend that does direct work: what an operator asks of nodes outside of a plan.
type Director interface {
	// PlanDirect says what would be done to which nodes, and which are refused. It asks their
	// BMCs and changes nothing. The plan can be done once, within DirectKept.
	PlanDirect(ctx context.Context, q DirectRequest) (DirectPlan, error)
	// DoDirect does a plan and gives the result of each node to report when it has one, one at a
	// time. Once ctx is done nothing more is begun; what has begun goes on to its end.
	DoDirect(ctx context.Context, id string, report func(DirectResult)) error
}

// DirectKept is how long a plan of direct work that was shown can be done.
const DirectKept = 15 * time.Minute

// DirectVerb is what is done.
type DirectVerb string

// The verbs.
const (
	DirectOn    DirectVerb = "power on"
	DirectOff   DirectVerb = "power off"
	DirectCycle DirectVerb = "power cycle"
	DirectReset DirectVerb = "power reset"
	DirectMains DirectVerb = "power cycle --outlets" // at the PDUs
	DirectBoot  DirectVerb = "boot"                  // what the node boots from
	DirectLight DirectVerb = "locate"                // the light that locates its chassis
)

// DirectRequest asks for direct work on nodes.
type DirectRequest struct {
	Verb   DirectVerb `json:"verb"`
	Nodes  []string   `json:"nodes"` // by name, at least one
	By     string     `json:"by"`
	Host   string     `json:"host,omitempty"` // where the command was typed
	Reason string     `json:"reason,omitempty"`

	Wait  time.Duration `json:"wait,omitempty"`  // of power off: how long the operating system has to shut down
	Force bool          `json:"force,omitempty"` // of power off: off hard what is still on after Wait

	KillJobs    bool `json:"kill_jobs,omitempty"`    // also where jobs run
	JobsUnknown bool `json:"jobs_unknown,omitempty"` // it is known that none runs where the scheduler cannot be asked
	Again       bool `json:"again,omitempty"`        // also where nobody knows whether the last one was done

	Device     string `json:"device,omitempty"`     // of boot: pxe, http, disk, bios, none
	Persistent bool   `json:"persistent,omitempty"` // of boot: for every boot, not the next one alone
	Light      string `json:"light,omitempty"`      // of locate: on, off, blink
}

// DirectPlan is what would be done, in the order in which it is begun.
type DirectPlan struct {
	ID      string          `json:"id"` // for DoDirect
	Verb    DirectVerb      `json:"verb"`
	At      time.Time       `json:"at"`
	Steps   []DirectStep    `json:"steps"`
	Refused []DirectRefusal `json:"refused"`
	Notes   []string        `json:"notes,omitempty"`
}

// DirectStep is what is done to one node.
type DirectStep struct {
	Node    string     `json:"node"`
	Power   string     `json:"power"`             // as its BMC says now: on, off
	Does    string     `json:"does"`              // in words
	Nothing bool       `json:"nothing,omitempty"` // it is so already
	Batch   int        `json:"batch,omitempty"`   // of those that are switched on together, from 1; 0: it switches nothing on
	Uses    []plan.Use `json:"uses,omitempty"`    // of circuits, until the supplies have settled
}

// DirectRefusal says why nothing is done to a node.
type DirectRefusal struct {
	Node   string `json:"node"`
	Cause  string `json:"cause"`
	Action string `json:"action,omitempty"`
}

// DirectState is what became of direct work on a node.
type DirectState string

// The states.
const (
	DirectDone    DirectState = "done"
	DirectFailed  DirectState = "failed"  // it was not done, or the BMC shows something else
	DirectUnknown DirectState = "unknown" // nobody knows whether it was done
	DirectSkipped DirectState = "skipped" // not begun
)

// DirectResult is what became of it on one node.
type DirectResult struct {
	Node   string      `json:"node"`
	State  DirectState `json:"state"`
	Text   string      `json:"text"`             // what was read back, or the error; it may quote a BMC
	Action string      `json:"action,omitempty"` // what to do about it
	At     time.Time   `json:"at"`
}

// mostDirect bounds a request: it names each of 12,500 nodes.
const mostDirect = 4 << 20

// serveDirectPlan writes the plan of direct work. All BMCs of a large site take longer than
// other answers.
func serveDirectPlan(b Backend) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := readDirect(r, b)
		if err != nil {
			writeError(w, err)
			return
		}
		raw, err := json.Marshal(p)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(raw, '\n')) // a client that is gone needs no answer
	}
}

// readDirect reads the request and makes its plan.
func readDirect(r *http.Request, b Backend) (p DirectPlan, err error) {
	d, ok := b.(Director)
	if !ok {
		return p, errNoDirector
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, mostDirect+1))
	if err != nil || len(raw) > mostDirect {
		return p, errkind.New(errkind.Invalid, "the request cannot be read, or is longer than %d bytes", mostDirect)
	}
	var q DirectRequest
	if err := json.Unmarshal(raw, &q); err != nil {
		return p, errkind.New(errkind.Invalid, "the request is not readable: %w", err)
	}
	if q.By == "" || len(q.Nodes) == 0 {
		return p, errkind.New(errkind.Invalid, "the request does not say who asks, or for which nodes")
	}
	return d.PlanDirect(r.Context(), q)
}

// errNoDirector is the answer of an owner that does no direct work.
var errNoDirector = errkind.New(errkind.Unsupported, "the process that owns the state does no direct work on nodes").
	Do("Wait until it ends; `ironrail status` says what it does.")

// serveDirect does a plan of direct work, and writes one JSON line for each node as soon as it has
// a result.
func serveDirect(b Backend) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, ok := b.(Director)
		if !ok {
			writeError(w, errNoDirector)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		lines := newLineWriter(w)
		err := d.DoDirect(ctx, r.FormValue("plan"), func(x DirectResult) {
			if lines.write(x) != nil {
				cancel() // the client is gone: nothing more is begun
			}
		})
		if err != nil && !lines.began {
			writeError(w, err)
		}
	}
}

// PlanDirect asks the owner what would be done; see Director. It has no deadline of its own.
func (c *Client) PlanDirect(ctx context.Context, q DirectRequest) (p DirectPlan, err error) {
	resp, err := c.send(ctx, http.MethodPost, "/direct/plan", q)
	if err != nil {
		return p, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&p); err != nil {
		return p, fmt.Errorf("control socket: %w", err)
	}
	return p, nil
}

// DoDirect has the owner do a plan of PlanDirect; see Director. An owner that ends meanwhile
// leaves nodes without a result, which is no error.
func (c *Client) DoDirect(ctx context.Context, id string, report func(DirectResult)) error {
	resp, err := c.send(ctx, http.MethodPost, "/direct?plan="+url.QueryEscape(id), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readLines(ctx, resp.Body, maxAnswer, func(x DirectResult) error { report(x); return nil })
}
