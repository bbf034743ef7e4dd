// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
)

// copiesInAge is how many copies of the state are made in the age of the one that is put
// back, on the hardware's clock.
const copiesInAge = 6

// copies are those that an operator makes of a state whose disk will be lost. The zero value
// is of one that makes none.
type copies struct {
	all  []stateCopy // the oldest first
	err  error       // of making them
	done sync.WaitGroup
	stop context.CancelFunc // nil: none are made
}

// stateCopy is a copy of the state, as a file.
type stateCopy struct {
	at   time.Time
	path string
}

// beginCopies copies the state at once and then again and again, where a disk will be lost.
func (t *Rehearsal) beginCopies(ctx context.Context) {
	if t.opt.Kill.Disk == 0 {
		return
	}
	ctx, t.copies.stop = context.WithCancel(ctx)
	t.copies.done.Go(func() { t.copies.err = t.makeCopies(ctx) })
}

// endCopies ends what beginCopies began.
func (t *Rehearsal) endCopies() error {
	if t.copies.stop != nil {
		t.copies.stop()
	}
	t.copies.done.Wait()
	return t.copies.err
}

func (t *Rehearsal) makeCopies(ctx context.Context) error {
	memory, ok := t.Store.Store.(*state.Memory)
	if !ok {
		return errkind.New(errkind.Internal, "the state of a rehearsal is not in memory")
	}
	for {
		c := stateCopy{t.Clock.Now(), t.file("copy-" + strconv.Itoa(len(t.copies.all)) + ".db")}
		if err := memory.Reopen().SaveAs(context.WithoutCancel(ctx), c.path); err != nil {
			return err
		}
		t.copies.all = append(t.copies.all, c)
		if t.Clock.Sleep(ctx, t.opt.Kill.Disk/copiesInAge) != nil {
			return nil
		}
	}
}

// replaceDisk puts the state of a controller whose disk died back from the newest copy that is old
// enough, as `ironrail state restore` does, and plans anew.
func (t *Rehearsal) replaceDisk(ctx context.Context) (*plan.Plan, error) {
	if err := t.endCopies(); err != nil {
		return nil, err
	}
	from := t.copies.all[0]
	for _, c := range t.copies.all {
		if t.Clock.Now().Sub(c.at) >= t.opt.Kill.Disk {
			from = c
		}
	}
	path := filepath.Join(t.dir, "restored.db")
	if _, err := state.RestoreCopy(ctx, path, from.path, state.Restoring{At: t.Clock.Now(), Void: provision.OfItsMoment}); err != nil {
		return nil, err
	}
	s, err := state.Open(path)
	if err != nil {
		return nil, err
	}
	t.Store = NewStore(s)
	if err := t.Open(ctx); err != nil {
		return nil, err
	}
	return t.plan(ctx)
}
