// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"context"
	"slices"
	"sync"

	"github.com/ironrail/ironrail/engine/plan"
)

// recording is one console.
type recording struct {
	end context.CancelFunc

	mu     sync.Mutex // guards what follows
	log    log
	lines  []string // the last that were printed
	bytes  int      // of lines
	ever   int      // lines, those let go included
	steps  []mark   // under way, the newest last
	typing int      // steps that type at it
	err    error    // why it is not read; nil: it is
}

// mark is where in a console a step began.
type mark struct {
	step plan.StepID
	from int // lines before it
}

// add keeps a line, and lets the oldest go. The error is that of the log, once.
func (x *recording) add(l Line) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !l.Note {
		x.lines, x.bytes, x.ever = append(x.lines, l.Text), x.bytes+len(l.Text)+1, x.ever+1
		for x.bytes > tailBytes && len(x.lines) > 1 {
			x.bytes -= len(x.lines[0]) + 1
			x.lines = x.lines[1:]
		}
		if x.typing > 0 {
			return nil
		}
	}
	return x.log.write(l)
}

// closeLog ends the log.
func (x *recording) closeLog() {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.log.close() // what was written is written
}

// setError keeps why the console is not read; false where that was so before.
func (x *recording) setError(err error) (news bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	news = err != nil && (x.err == nil || x.err.Error() != err.Error())
	x.err = err
	return news
}

// watch notes that a step begins.
func (x *recording) watch(step plan.StepID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.steps = append(x.steps, mark{step, x.ever})
}

// unwatch forgets a step, and returns what was printed since it began, oldest first.
func (x *recording) unwatch(step plan.StepID) (lines []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.steps = slices.DeleteFunc(x.steps, func(m mark) bool {
		if m.step != step {
			return false
		}
		lines = x.from(m.from)
		return true
	})
	return lines
}

// from are the lines behind the first so many, as far as they are kept. Called with mu held.
func (x *recording) from(first int) []string {
	gone := x.ever - len(x.lines)
	return slices.Clone(x.lines[min(len(x.lines), max(0, first-gone)):])
}

// beginTyping keeps what is printed out of the log.
func (x *recording) beginTyping() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.typing++
}

// endTyping forgets what was printed meanwhile.
func (x *recording) endTyping() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.typing--
	x.lines, x.bytes = nil, 0
}
