// SPDX-License-Identifier: Apache-2.0

// Package burn loads every GPU of an installed node with one program, and watches
// the GPUs until it ends: how hot they get, what they draw, and what holds their
// clocks down. It judges nothing.
//
// The load ends with its caller: a caller that is gone is noticed when nothing
// more can be written to it, and the program then ends as well.
package burn

import (
	"context"
	"io"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/nodecheck"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

const (
	// beatEvery is after how many looks a byte is written to the caller.
	beatEvery = 6
	// lookLimit is how long a program that tells of the GPUs may take.
	lookLimit = 30 * time.Second
	// mostOutput and mostErrors are how many bytes of the load's output are kept:
	// the last ones, where its verdict stands.
	mostOutput, mostErrors = 256 << 10, 16 << 10
)

// Output is how a program ended.
type Output struct {
	Stdout, Stderr []byte
	Exit           int // -1 when a signal ended it
}

// Burner loads a node and watches it.
type Burner struct {
	FS    sysfs.FS
	Clock clock.Clock
	// Run runs a program to its end. When ctx ends it asks the program to end, and
	// kills it where it does not. Programs that cannot be started are errors.
	Run func(ctx context.Context, argv []string) (Output, error)
	// Lock makes sure that no other load runs, also not one whose agent is gone; it
	// waits for one that is about to end.
	Lock func(context.Context) (release func(), err error)
	Beat io.Writer // the caller; what is written is white space
}

// Burn runs the program, and looks at the GPUs every so often until it ends.
func (b Burner) Burn(ctx context.Context, p wire.BurnParams) wire.BurnResult {
	if len(p.Program) == 0 || p.Every < 1 || p.Limit <= 0 {
		return failed(errkind.New(errkind.Invalid, "a burn-in needs a program, a limit and a second or more between two looks"))
	}
	release, err := b.Lock(ctx)
	if err != nil {
		return failed(err)
	}
	defer release()
	return b.loaded(ctx, p)
}

func failed(err error) wire.BurnResult {
	return wire.BurnResult{Error: &wire.TaskError{Kind: errkind.Of(err).String(), Text: err.Error(), Action: errkind.Action(err)}}
}

// ended is how the program came to its end.
type ended struct {
	out Output
	err error
}

// loaded is Burn once the lock is held.
func (b Burner) loaded(ctx context.Context, p wire.BurnParams) wire.BurnResult {
	w := watcher{Burner: b, vendor: p.Vendor, gpus: map[string]*wire.BurnGPU{}}
	load, stop := b.Clock.WithTimeout(ctx, seconds(p.Limit))
	defer stop()
	running, over := context.WithCancel(load)
	defer over()
	end := make(chan ended, 1)
	began, arrays := b.Clock.Now(), nodecheck.Arrays(b.FS.Text("proc/mdstat"))
	go func() { // ends with the program, which ends with load
		out, err := b.Run(load, p.Program)
		end <- ended{out, err}
		over()
	}()
	why := ""
	for b.Clock.Sleep(running, seconds(p.Every)) == nil {
		w.sample(running)
		if w.result.Looks%beatEvery == 0 && why == "" {
			if _, err := b.Beat.Write([]byte("\n")); err != nil {
				why = "nobody waits for its result any more"
				stop()
			}
		}
	}
	e := <-end
	r := w.done()
	r.Seconds, r.Arrays = b.Clock.Now().Sub(began).Seconds(), arrays
	r.Exit, r.Output, r.Errors = e.out.Exit, tail(e.out.Stdout, mostOutput), tail(e.out.Stderr, mostErrors)
	switch {
	case e.err != nil:
		f := failed(e.err)
		r.Error = f.Error
	case why != "":
		r.Ended = why
	case ctx.Err() != nil:
		r.Ended = "it was told to stop"
	case load.Err() != nil:
		r.Ended = "it did not end by itself in " + seconds(p.Limit).String()
	}
	return r
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// tail is the end of an output.
func tail(b []byte, most int) string { return string(b[max(0, len(b)-most):]) }
