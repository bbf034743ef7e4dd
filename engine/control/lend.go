// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Lender is a Backend that stays when no run is active: it lends the right to change the
// state to one command at a time, and runs the plans of these commands itself.
type Lender interface {
	// Borrow gives a command the right to change the state and to begin a run, until end
	// is called. The error is of kind refused and names who has it, or which run is active.
	Borrow(ctx context.Context, b Borrower) (loan string, end func(), err error)
	// Append appends what the borrower has made durable.
	Append(ctx context.Context, loan string, b state.Batch) (uint64, error)
	// Object returns one object of the state as it is now; false when there is none.
	Object(ctx context.Context, k state.Key) (state.Object, bool, error)
	// Objects returns those of a kind, as state.Reader has them.
	Objects(ctx context.Context, kind string) ([]state.Object, error)
	// Review shows a plan that waits for its approval to whoever looks, until its run begins
	// or the loan ends.
	Review(ctx context.Context, loan string, q ReviewRequest, sealed io.Reader) error
	// Begin checks a plan against state and site, and begins to do it. The run goes on
	// when the loan ends.
	Begin(ctx context.Context, loan string, q RunRequest, sealed io.Reader) (RunBegun, error)
	// Result waits for the end of the run that is active, or gives that of the last one.
	Result(ctx context.Context, run string) (RunEnd, error)
	// Stop stops the run that is active at once.
	Stop(ctx context.Context) error
}

// Borrower says who borrows the state.
type Borrower struct {
	Identity
	Program string `json:"program"` // version of the borrower's program
}

// ReviewRequest is what a plan is shown with.
type ReviewRequest struct {
	Sum      string   `json:"sum"`      // Digest of the plan
	Expected []string `json:"expected"` // how long it may take, in lines
}

// RunRequest is what a run is begun with, beside its plan.
type RunRequest struct {
	Sum      string          `json:"sum"`                // Digest of the plan
	Resume   bool            `json:"resume,omitempty"`   // the plan is the unfinished one of the state
	Approval *state.Approval `json:"approval,omitempty"` // who approved it
}

// RunBegun is a run that has begun.
type RunBegun struct {
	Run  string `json:"run"`  // its id
	From uint64 `json:"from"` // number of its first event
}

// RunEnd is how a run ended.
type RunEnd struct {
	Result apply.Result `json:"result"`
	Error  *failure     `json:"error,omitempty"` // of the run as a whole
}

// Err is the error of the run as a whole, with its kind and action; nil when there is none.
func (e RunEnd) Err() error {
	if e.Error == nil {
		return nil
	}
	return &errkind.Error{Kind: e.Error.Kind, Err: errors.New(e.Error.Error), Action: e.Error.Action}
}

// NewRunEnd is the end of a run with its result and error.
func NewRunEnd(res apply.Result, err error) RunEnd {
	e := RunEnd{Result: res}
	if err != nil {
		e.Error = &failure{Error: err.Error(), Kind: errkind.Of(err), Action: errkind.Action(err)}
	}
	return e
}

// Bounds of what a borrower sends, in bytes.
const (
	mostAppend  = 256 << 20
	mostRequest = 64 << 10 // the line before a plan
	mostPlan    = 1 << 30
)

// errNoLender is the answer of an owner that ends with its own run.
var errNoLender = errkind.New(errkind.Unsupported, "the process that owns the state does not lend it").
	Do("Wait until it ends; `ironrail status` says what it does.")

// addLender adds what a Lender answers.
func addLender(m *http.ServeMux, b Backend) {
	l, ok := b.(Lender)
	lent := func(h http.HandlerFunc) http.HandlerFunc {
		if ok {
			return h
		}
		return func(w http.ResponseWriter, _ *http.Request) { writeError(w, errNoLender) }
	}
	m.HandleFunc("POST /borrow", lent(func(w http.ResponseWriter, r *http.Request) { serveBorrow(w, r, l) }))
	m.HandleFunc("POST /append", lent(func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, func() (any, error) { return readAppend(r, l) })
	}))
	m.HandleFunc("GET /object", lent(serveJSON(func(r *http.Request) (any, error) {
		o, ok, err := l.Object(r.Context(), state.Key{Kind: r.FormValue("kind"), Name: r.FormValue("name")})
		return lentObject{Known: ok, Version: o.Version, Value: o.Value}, err
	})))
	m.HandleFunc("GET /objects", lent(serveJSON(func(r *http.Request) (any, error) {
		all, err := l.Objects(r.Context(), r.FormValue("kind"))
		out := make([]lentObject, len(all))
		for i, o := range all {
			out[i] = lentObject{Known: true, Name: o.Key.Name, Version: o.Version, Value: o.Value}
		}
		return out, err
	})))
	m.HandleFunc("POST /run", lent(func(w http.ResponseWriter, r *http.Request) {
		body := &deadlineReader{r: r.Body, out: http.NewResponseController(w), each: lineTime}
		answerJSON(w, func() (any, error) {
			return readPlan(body, func(q RunRequest, sealed io.Reader) (any, error) {
				return l.Begin(r.Context(), r.FormValue("loan"), q, sealed)
			})
		})
	}))
	m.HandleFunc("POST /review", lent(func(w http.ResponseWriter, r *http.Request) {
		body := &deadlineReader{r: r.Body, out: http.NewResponseController(w), each: lineTime}
		answerJSON(w, func() (any, error) {
			return readPlan(body, func(q ReviewRequest, sealed io.Reader) (any, error) {
				return nil, l.Review(r.Context(), r.FormValue("loan"), q, sealed)
			})
		})
	}))
	m.HandleFunc("GET /run", lent(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // nothing more is read
		answerJSON(w, func() (any, error) { return l.Result(r.Context(), r.FormValue("run")) })
	}))
	m.HandleFunc("POST /stop", lent(serveJSON(func(r *http.Request) (any, error) { return nil, l.Stop(r.Context()) })))
}

// serveBorrow lends the state for as long as the client holds the connection.
func serveBorrow(w http.ResponseWriter, r *http.Request, l Lender) {
	var b Borrower
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil || b.Command == "" {
		writeError(w, errkind.New(errkind.Invalid, "the request does not say who borrows the state"))
		return
	}
	loan, end, err := l.Borrow(r.Context(), b)
	if err != nil {
		writeError(w, err)
		return
	}
	defer end()
	if newLineWriter(w).write(loan) == nil {
		<-r.Context().Done()
	}
}

// lentPut is a state.Put as it travels: a deletion is said.
type lentPut struct {
	Key    state.Key       `json:"key"`
	Want   uint64          `json:"want"`
	Delete bool            `json:"delete,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
}

// lentObject is a state.Object as it travels.
type lentObject struct {
	Known   bool            `json:"known"`
	Name    string          `json:"name,omitempty"` // in a list
	Version uint64          `json:"version,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// lentBatch is a state.Batch as it travels.
type lentBatch struct {
	ID      string         `json:"id,omitempty"`
	Records []state.Record `json:"records"`
	Puts    []lentPut      `json:"puts"`
}

// readAppend appends what a borrower sends.
func readAppend(r *http.Request, l Lender) (any, error) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, mostAppend+1))
	if err != nil || len(raw) > mostAppend {
		return nil, errkind.New(errkind.Invalid, "the records cannot be read, or are longer than %d bytes", mostAppend)
	}
	var in lentBatch
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errkind.New(errkind.Invalid, "the records are not readable: %w", err)
	}
	b := state.Batch{ID: in.ID, Records: in.Records}
	for _, p := range in.Puts {
		x := state.Put{Key: p.Key, Want: p.Want, Value: p.Value}
		if p.Delete {
			x.Value = nil
		} else if x.Value == nil {
			return nil, errkind.New(errkind.Invalid, "object %s has no value and is not deleted", p.Key)
		}
		b.Puts = append(b.Puts, x)
	}
	return l.Append(r.Context(), r.FormValue("loan"), b)
}

// deadlineReader gives the client time for each part of a long body, and not for all: one
// that was stopped in the middle keeps the owner from nothing for long.
type deadlineReader struct {
	r    io.Reader
	out  *http.ResponseController
	each time.Duration
}

// Read implements io.Reader. No deadline is left: one that passes later looks like a client
// that is gone.
func (d *deadlineReader) Read(b []byte) (int, error) {
	_ = d.out.SetReadDeadline(time.Now().Add(d.each))
	n, err := d.r.Read(b)
	_ = d.out.SetReadDeadline(time.Time{})
	return n, err
}

// readPlan reads what a borrower asks for, a line with the request and the plan as it is saved
// in a file, and does it.
func readPlan[Q any](body io.Reader, do func(q Q, sealed io.Reader) (any, error)) (any, error) {
	in := bufio.NewReaderSize(io.LimitReader(body, mostPlan), mostRequest)
	line, err := in.ReadSlice('\n')
	var q Q
	if err == nil {
		err = json.Unmarshal(line, &q)
	}
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "the request is not readable: %w", err)
	}
	return do(q, in)
}

// Borrow borrows the state; see Lender. The loan ends with end, or with this process.
func (c *Client) Borrow(ctx context.Context, b Borrower) (loan string, end func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	resp, err := c.send(ctx, http.MethodPost, "/borrow", b)
	if err != nil {
		cancel()
		return "", nil, err
	}
	end = func() { cancel(); _ = resp.Body.Close() }
	if err := json.NewDecoder(resp.Body).Decode(&loan); err != nil {
		end()
		return "", nil, fmt.Errorf("control socket: %w", err)
	}
	return loan, end, nil
}

// Append appends to the borrowed state, and returns the number of the first record.
func (c *Client) Append(ctx context.Context, loan string, b state.Batch) (first uint64, err error) {
	out := lentBatch{ID: b.ID, Records: b.Records}
	for _, p := range b.Puts {
		out.Puts = append(out.Puts, lentPut{Key: p.Key, Want: p.Want, Delete: p.Value == nil, Value: p.Value})
	}
	return first, c.call(ctx, http.MethodPost, "/append?loan="+url.QueryEscape(loan), out, &first)
}

// Object asks for one object of the state; false when there is none.
func (c *Client) Object(ctx context.Context, k state.Key) (state.Object, bool, error) {
	var o lentObject
	err := c.call(ctx, http.MethodGet, "/object?kind="+url.QueryEscape(k.Kind)+"&name="+url.QueryEscape(k.Name), nil, &o)
	return state.Object{Key: k, Version: o.Version, Value: o.Value}, o.Known, err
}

// Objects asks for the objects of a kind, of which there are at most as many as subjects.
func (c *Client) Objects(ctx context.Context, kind string) ([]state.Object, error) {
	var in []lentObject
	err := c.call(ctx, http.MethodGet, "/objects?kind="+url.QueryEscape(kind), nil, &in)
	out := make([]state.Object, len(in))
	for i, o := range in {
		out[i] = state.Object{Key: state.Key{Kind: kind, Name: o.Name}, Version: o.Version, Value: o.Value}
	}
	return out, err
}

// Begin has the owner do a plan. It has no deadline of its own: sockets are opened and
// switches are asked before the first step.
func (c *Client) Begin(ctx context.Context, loan string, q RunRequest, p *plan.Plan, k plan.Key) (begun RunBegun, err error) {
	return begun, c.sendPlan(ctx, "/run?loan="+url.QueryEscape(loan), q, p, k, &begun)
}

// Review has the owner show a plan; see Lender.
func (c *Client) Review(ctx context.Context, loan string, q ReviewRequest, p *plan.Plan, k plan.Key) error {
	return c.sendPlan(ctx, "/review?loan="+url.QueryEscape(loan), q, p, k, new(struct{}))
}

// sendPlan sends a request about a plan, and reads the answer into out.
func (c *Client) sendPlan(ctx context.Context, path string, q any, p *plan.Plan, k plan.Key, out any) error {
	var head bytes.Buffer
	if err := json.NewEncoder(&head).Encode(q); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	body, w := io.Pipe()
	go func() { _ = w.CloseWithError(plan.Save(w, p, k)) }()
	defer body.Close() // ends the writer where the owner reads no more
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ironrail"+path, io.MultiReader(&head, body))
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return c.read(req, out)
}

// Result waits for the end of a run; "" is the one that is active, or else the last.
func (c *Client) Result(ctx context.Context, run string) (e RunEnd, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ironrail/run?run="+url.QueryEscape(run), nil)
	if err != nil {
		return e, fmt.Errorf("control socket: %w", err)
	}
	return e, c.read(req, &e)
}

// Stop stops the active run at once.
func (c *Client) Stop(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/stop", nil, nil)
}

// read sends a request and reads the answer into out, without a deadline.
func (c *Client) read(req *http.Request, out any) error {
	resp, err := c.answer(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}
