// SPDX-License-Identifier: Apache-2.0

package rack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"time"

	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// callLimit bounds a question and its answer in time, maxBody in bytes: a sweep of a
// fabric prints some MiB.
const (
	callLimit = time.Minute
	maxBody   = 64 << 20
)

// failure is the answer to what could not be done.
type failure struct {
	Error  string       `json:"error"`
	Kind   errkind.Kind `json:"kind"`
	Action string       `json:"action,omitempty"`
	Absent bool         `json:"absent,omitempty"` // of a file that is not there
	Output []byte       `json:"output,omitempty"` // of a program, beside its error
}

// The questions and answers that are more than a word.
type (
	programCall struct {
		Argv []string `json:"argv"`
	}
	programAnswer struct {
		Output []byte `json:"output"`
	}
	clusterCall struct {
		Endpoint string `json:"endpoint"`
	}
	clusterAnswer struct {
		CA string `json:"ca"`
	}
	subnetCall struct {
		Fabric  string   `json:"fabric"`
		Argv    []string `json:"argv,omitempty"`
		Path    string   `json:"path,omitempty"`
		Content []byte   `json:"content,omitempty"`
		Restart bool     `json:"restart,omitempty"`
		From    int64    `json:"from,omitempty"`
	}
	subnetAnswer struct {
		Output onnode.Output `json:"output"`
		Text   []byte        `json:"text,omitempty"`
		End    int64         `json:"end,omitempty"`
	}
	nodesCall struct {
		Node string `json:"node"`
		With string `json:"with,omitempty"`
	}
	// Label is what a chassis says of itself.
	Label struct {
		Serial  string   `json:"serial"`
		UUID    string   `json:"uuid"`
		BootMAC addr.MAC `json:"boot_mac"`
	}
	faultCall struct {
		Fault string `json:"fault"` // as --fault has it
		Lift  bool   `json:"lift,omitempty"`
	}
	// nothing is the question or answer that has no content.
	nothing struct{}
)

// handler answers questions about the rack. What it does in the room ends with up.
func (l *living) handler(up context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /info", answer(func(context.Context, nothing) (Info, error) { return l.info, nil }))
	mux.Handle("POST /endpoints", answer(func(context.Context, nothing) ([]virtual.Endpoint, error) { return l.world.Endpoints(), nil }))
	mux.Handle("POST /program", answer(func(ctx context.Context, q programCall) (programAnswer, error) {
		out, err := l.world.Scheduler().Run(ctx, q.Argv...)
		return programAnswer{out}, withOutput(out, err)
	}))
	mux.Handle("POST /cluster", answer(func(_ context.Context, q clusterCall) (clusterAnswer, error) {
		return clusterAnswer{l.world.ClusterCA(q.Endpoint)}, nil
	}))
	mux.Handle("POST /subnet/{what}", l.subnet())
	mux.Handle("POST /replace", answer(func(ctx context.Context, q nodesCall) (Label, error) {
		if err := l.world.Replace(ctx, q.Node, l.nextChassis()); err != nil {
			return Label{}, err
		}
		n, _ := l.world.Node(q.Node) // it was replaced
		id := n.Metal().Identity()
		return Label{Serial: id.Serial, UUID: id.UUID, BootMAC: id.BootMAC}, nil
	}))
	mux.Handle("POST /exchange", answer(func(ctx context.Context, q nodesCall) (nothing, error) {
		return nothing{}, l.world.Exchange(ctx, q.Node, q.With)
	}))
	mux.Handle("POST /fault", answer(func(_ context.Context, q faultCall) (nothing, error) { return nothing{}, l.change(q) }))
	return mux
}

// answer makes a handler of a function.
func answer[Q, A any](do func(context.Context, Q) (A, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callLimit)
		defer cancel()
		var q Q
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = json.Unmarshal(b, &q)
		}
		if err != nil {
			writeFailure(w, errkind.New(errkind.Invalid, "the question is not readable: %w", err))
			return
		}
		a, err := do(ctx, q)
		if err != nil {
			writeFailure(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a) // whoever asked is gone
	})
}

// outputError is the error of a program that printed something.
type outputError struct {
	error
	output []byte
}

// Unwrap returns the error of the program.
func (e outputError) Unwrap() error { return e.error }

func withOutput(out []byte, err error) error {
	if err == nil {
		return nil
	}
	return outputError{err, out}
}

func writeFailure(w http.ResponseWriter, err error) {
	f := failure{Error: err.Error(), Kind: errkind.Of(err), Action: errkind.Action(err), Absent: errors.Is(err, fs.ErrNotExist)}
	if o, ok := errors.AsType[outputError](err); ok {
		f.Output = o.output
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(f) // whoever asked is gone
}

// subnet answers what is asked of the controller's host on an InfiniBand fabric.
func (l *living) subnet() http.Handler {
	do := map[string]func(context.Context, infiniband.Host, subnetCall) (subnetAnswer, error){
		"run": func(ctx context.Context, h infiniband.Host, q subnetCall) (a subnetAnswer, err error) {
			a.Output, err = h.Run(ctx, q.Argv...)
			return a, err
		},
		"read": func(ctx context.Context, h infiniband.Host, q subnetCall) (a subnetAnswer, err error) {
			a.Text, err = h.Read(ctx, q.Path)
			return a, err
		},
		"write": func(ctx context.Context, h infiniband.Host, q subnetCall) (a subnetAnswer, err error) {
			return a, h.Write(ctx, q.Path, q.Content)
		},
		"reload": func(ctx context.Context, h infiniband.Host, q subnetCall) (a subnetAnswer, err error) {
			return a, h.Reload(ctx, q.Restart)
		},
		"log": func(ctx context.Context, h infiniband.Host, q subnetCall) (a subnetAnswer, err error) {
			a.Text, a.End, err = h.Log(ctx, q.From)
			return a, err
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what := r.PathValue("what")
		answer(func(ctx context.Context, q subnetCall) (subnetAnswer, error) {
			m := l.world.SubnetManager(q.Fabric)
			if m == nil || do[what] == nil {
				return subnetAnswer{}, errkind.New(errkind.NotFound, "fabric %s has no subnet manager on this rack", q.Fabric)
			}
			return do[what](ctx, m, q)
		}).ServeHTTP(w, r)
	})
}

// nextChassis is the seed of the next chassis that somebody brings.
func (l *living) nextChassis() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chassis++
	return fmt.Sprintf("rack %d", l.chassis)
}

// change plants a fault, or takes it away.
func (l *living) change(q faultCall) error {
	f, err := fault.Parse(q.Fault)
	if err != nil {
		return errkind.New(errkind.Invalid, "%w", err)
	}
	if err := checkFault(l.inv, f); err != nil {
		return err
	}
	if q.Lift {
		return l.world.Lift(f)
	}
	return l.world.Plant(f)
}

// checkFault refuses a fault that does not fit the site, and one that only a rehearsal can
// plant, since it follows the run: a rack does not see what its controller does.
func checkFault(inv *inventory.Inventory, f fault.Fault) error {
	if err := fault.CheckFits(inv, []fault.Fault{f}); err != nil {
		return errkind.New(errkind.Invalid, "%w", err)
	}
	row, _ := fault.FindRow(f.Kind)
	switch {
	case f.Kind == fault.ControllerKill:
		return errkind.New(errkind.Unsupported, "fault %s is planted in rehearsals only", f.Kind).Do("End `ironrail --rack apply` with kill -9.")
	case f.Kind == fault.RepoGone:
		return errkind.New(errkind.Unsupported, "fault %s is planted in rehearsals only", f.Kind).Do("Remove the folder repo in " + filepath.Join(Folder, stateFolder) + ".")
	case f.At != "" && f.At != row.At, f.Timing != (fault.Timing{}):
		return errkind.New(errkind.Unsupported, "a virtual rack plants a fault at once: it does not see the steps of a run, and keeps no time table").
			Do("Leave at, after, for, every and probability out, and plant it with `ironrail rack fault` when its time has come.")
	}
	return nil
}

// hashFolder is a number of a folder's name.
func hashFolder(folder string) int {
	if abs, err := filepath.Abs(folder); err == nil {
		folder = abs
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(folder)) // never fails
	return int(h.Sum32() >> 1)
}
