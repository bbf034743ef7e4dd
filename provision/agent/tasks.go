// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// memoryFile keeps the results of this boot, so that a killed agent answers a
// repeated task with its old result.
const memoryFile = "results.json"

// record is one task of this boot.
type record struct {
	Task      wire.Task    `json:"task"`
	Result    *wire.Result `json:"result,omitempty"` // nil while it runs or waits
	Delivered bool         `json:"delivered"`

	parked bool // sent to a process of the controller that had not asked for it: it waits to be asked for
	again  int  // how often its result was asked for again by this process
}

// tasks runs tasks one after another and remembers their results for the boot.
type tasks struct {
	cfg  Config
	call caller
	wg   sync.WaitGroup
	work chan string // keys, in the order of their arrival

	mu      sync.Mutex
	order   []string           // guarded by mu, like all below
	byKey   map[string]*record // every task of this boot
	running int
	ready   context.Context // done when a result waits for delivery
	setOff  context.CancelFunc
	changed chan struct{} // closed and replaced when a task ends
}

// newTasks remembers what an earlier process of this boot has left in Memory.
func newTasks(cfg Config, call caller) *tasks {
	t := &tasks{cfg: cfg, call: call, work: make(chan string, 64), byKey: map[string]*record{}, changed: make(chan struct{})}
	t.ready, t.setOff = context.WithCancel(context.Background())
	for _, r := range t.recall() {
		if r.Result == nil {
			continue // it was cut off; the controller repeats it
		}
		t.byKey[r.Task.Key] = &r
		t.order = append(t.order, r.Task.Key)
		if !r.Delivered {
			t.setOff()
		}
	}
	return t
}

// start begins to work; wait waits for the end after ctx is done.
func (t *tasks) start(ctx context.Context) {
	t.wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case key := <-t.work:
				t.do(ctx, key)
			}
		}
	})
}

func (t *tasks) wait() { t.wg.Wait() }

// take accepts a task. A key that runs is left running; one that is done has its
// result sent again. taken is false for both.
func (t *tasks) take(task wire.Task) (taken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.byKey[task.Key]; old != nil {
		if old.Result != nil {
			old.Delivered, old.parked = false, false
			old.again++
			t.setOff()
		}
		return false
	}
	if t.running >= cap(t.work) {
		t.cfg.Log.Warn("task left for later: too many wait", "task", task.Kind)
		return false
	}
	t.byKey[task.Key] = &record{Task: task}
	t.order = append(t.order, task.Key)
	t.running++
	t.work <- task.Key // never blocks: running is below its capacity
	return true
}

// do runs one task and keeps its result.
func (t *tasks) do(ctx context.Context, key string) {
	t.mu.Lock()
	task := t.byKey[key].Task
	t.mu.Unlock()
	t.cfg.Log.Info("task begins", "task", task.Kind, "key", key)
	began := time.Now()
	report := newReporter(ctx, t.call, key, t.cfg.Log)
	result := t.run(ctx, task, report.set)
	report.close()
	if ctx.Err() != nil {
		return // we are being stopped: the task is not done and must be repeated
	}
	if result.Error != nil {
		t.cfg.Log.Error("task failed", "task", task.Kind, "key", key, "err", result.Error.Text, "hint", result.Error.Action)
	} else {
		t.cfg.Log.Info("task done", "task", task.Kind, "key", key, "took", time.Since(began).Round(time.Second/10))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey[key].Result = &result
	t.running--
	t.setOff()
	close(t.changed)
	t.changed = make(chan struct{})
	t.save()
}

// run calls the handler. A panic in it fails the task, not the node.
func (t *tasks) run(ctx context.Context, task wire.Task, progress func(wire.Progress)) (result wire.Result) {
	result = wire.Result{Key: task.Key, Kind: task.Kind}
	defer func() {
		if p := recover(); p != nil {
			t.cfg.Log.Error("defect in the agent", "task", task.Kind, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result.Output, result.Error = nil, taskError(errkind.New(errkind.Internal, "defect in the agent: %v", p))
		}
	}()
	if task.Kind == wire.Reboot {
		return rebootResult(task)
	}
	handler := t.cfg.Handlers[task.Kind]
	if handler == nil {
		result.Error = taskError(errkind.New(errkind.Unsupported, "this agent does not know the task %q", task.Kind).
			Do("Build the ramdisk and the controller from the same ironrail."))
		return result
	}
	output, err := handler(ctx, task.Params, progress)
	if err == nil {
		result.Output, err = json.Marshal(output)
	}
	if err != nil {
		result.Output, result.Error = nil, taskError(err)
	}
	return result
}

// rebootResult answers a reboot; it happens once this answer is acknowledged.
func rebootResult(task wire.Task) wire.Result {
	result := wire.Result{Key: task.Key, Kind: task.Kind, Output: json.RawMessage("{}")}
	var p wire.RebootParams
	if err := decode(task.Params, &p); err != nil {
		result.Output, result.Error = nil, taskError(err)
	}
	return result
}

// reboot returns the parameters of a reboot that was answered.
func (t *tasks) reboot(key string) (p wire.RebootParams) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.byKey[key]; r != nil {
		decode(r.Task.Params, &p) // rebootResult has checked it
	}
	return p
}

// rebooting returns the reboot that was answered in this boot, acknowledged or
// not, if any; one whose answer waits to be asked for is none.
func (t *tasks) rebooting() (wire.RebootParams, bool) {
	return t.answered(func(r *record) bool { return !r.parked })
}

// acknowledgedReboot returns the reboot that the controller has acknowledged in this boot, if any.
func (t *tasks) acknowledgedReboot() (wire.RebootParams, bool) {
	return t.answered(func(r *record) bool { return r.Delivered })
}

// answered returns a reboot that was answered without an error, when is says so of
// it. is is called under mu.
func (t *tasks) answered(is func(*record) bool) (p wire.RebootParams, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.byKey {
		if r.Task.Kind == wire.Reboot && r.Result != nil && r.Result.Error == nil && is(r) {
			decode(r.Task.Params, &p) // rebootResult has checked it
			return p, true
		}
	}
	return p, false
}

// taskError is an error as it travels.
func taskError(err error) *wire.TaskError {
	out := &wire.TaskError{Kind: errkind.Of(err).String(), Text: err.Error(), Action: errkind.Action(err), Begun: errkind.HasBegun(err)}
	for p, ok := errors.AsType[*wire.PartError](err); ok; p, ok = errors.AsType[*wire.PartError](p.Err) {
		out.Part = p.Part // the innermost knows best
	}
	return out
}

// decode reads the parameters of a task; none at all are the zero value.
func decode(params json.RawMessage, into any) error {
	if len(params) == 0 {
		return nil
	}
	if err := json.Unmarshal(params, into); err != nil {
		return errkind.New(errkind.Internal, "parameters of the task: %w", err)
	}
	return nil
}

// undelivered returns the oldest result that the controller has not acknowledged,
// and how often it was asked for again.
func (t *tasks) undelivered() (result wire.Result, again int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range t.order {
		if r := t.byKey[key]; r.Result != nil && !r.Delivered && !r.parked {
			return *r.Result, r.again, true
		}
	}
	t.ready, t.setOff = context.WithCancel(context.Background())
	return wire.Result{}, 0, false
}

// delivered marks a result as acknowledged, unless it was asked for once more
// since undelivered returned it: then it is sent once more.
func (t *tasks) delivered(key string, again int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.byKey[key]; r.again == again {
		r.Delivered = true
		t.save()
	}
}

// park leaves a result until it is asked for, unless that has happened since
// undelivered returned it.
func (t *tasks) park(key string, again int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.byKey[key]; r.again == again {
		r.parked = true
	}
}

// resultReady returns a context that is done when a result waits for delivery.
func (t *tasks) resultReady() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ready
}

// busy reports whether a task runs or waits to run.
func (t *tasks) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running > 0
}

// waitChange waits until a task ends, for at most d.
func (t *tasks) waitChange(ctx context.Context, d time.Duration) error {
	t.mu.Lock()
	changed := t.changed
	t.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// save writes the records beside the old file and renames. The folder is in
// memory (a tmpfs), so there is nothing to sync. Called with mu held.
func (t *tasks) save() {
	if t.cfg.Memory == "" {
		return
	}
	records := make([]record, 0, len(t.order))
	for _, key := range t.order {
		records = append(records, *t.byKey[key])
	}
	b, err := json.Marshal(records)
	if err == nil {
		err = os.WriteFile(filepath.Join(t.cfg.Memory, memoryFile+".new"), b, 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(t.cfg.Memory, memoryFile+".new"), filepath.Join(t.cfg.Memory, memoryFile))
	}
	if err != nil {
		t.cfg.Log.Warn("results are not kept over a crash of the agent", "err", err)
	}
}

// recall reads what remember wrote; nothing when there is none.
func (t *tasks) recall() []record {
	if t.cfg.Memory == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(t.cfg.Memory, memoryFile))
	if err != nil {
		return nil
	}
	var records []record
	if err := json.Unmarshal(b, &records); err != nil {
		t.cfg.Log.Warn("results of before the crash are lost", "err", err)
		return nil
	}
	return records
}
