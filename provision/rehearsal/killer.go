package rehearsal

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/provision/state"
	"github.com/ironrail/ironrail/provision/subject"
	"github.com/ironrail/ironrail/provision/virtual/fault"
)

// errKilled is what a store says whose process is dead.
var errKilled = errors.New("the controller was killed here")

// Kill says between which two records of the journal the controller dies.
type Kill struct {
	At   uint64 // number of the record from which on nothing is written; 0: never
	Kept bool   // the append of that record is still durable; else it is lost
}

// killer is a store that dies once. Like the store of a dead process it refuses
// everything afterwards; reopen gives the next process a living one.
type killer struct {
	state.Store
	when []trigger
	die  context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	next  uint64     // number of the next record
	dead  bool
	fired int
}

// trigger is a condition of a killer.
type trigger func(batch state.Batch, first uint64) (fire, kept bool)

// atRecord fires when the record with that number is written.
func atRecord(k Kill) trigger {
	return func(b state.Batch, first uint64) (bool, bool) {
		return k.At > 0 && first <= k.At && k.At < first+uint64(len(b.Records)), k.Kept
	}
}

// atStep fires at the first record of a step, on the node that the fault names.
func atStep(f fault.Fault) trigger {
	return func(b state.Batch, _ uint64) (bool, bool) {
		for _, r := range b.Records {
			if stepMatches(r.Step, f.At) && (f.Node == "" || r.Subject == subject.OfNode(f.Node)) {
				return true, true
			}
		}
		return false, false
	}
}

// stepMatches reports whether a step id is of the kind that a fault names:
// n1/install.write by install.write or by install.
func stepMatches(id, at string) bool {
	action := id[strings.LastIndexByte(id, '/')+1:]
	return at != "" && (action == at || strings.HasPrefix(action, at+"."))
}

// Append writes unless the process dies before, or died.
func (k *killer) Append(ctx context.Context, f state.Fence, b state.Batch) (uint64, error) {
	k.mu.Lock()
	if k.dead {
		k.mu.Unlock()
		return 0, errKilled
	}
	fire, kept := false, false
	for i, when := range k.when {
		if fire, kept = when(b, k.next); fire {
			k.when = append(k.when[:i:i], k.when[i+1:]...)
			break
		}
	}
	k.dead = fire
	if fire {
		k.fired++
	}
	k.mu.Unlock()
	if fire {
		defer k.die(errKilled)
	}
	if fire && !kept {
		return 0, errKilled
	}
	first, err := k.Store.Append(ctx, f, b)
	if err == nil {
		k.mu.Lock()
		k.next = max(k.next, first+uint64(len(b.Records)))
		k.mu.Unlock()
	}
	if fire {
		return 0, errKilled // it is durable, and nobody was told
	}
	return first, err
}

// reopen is the store as the next process finds it; die ends that process.
func (k *killer) reopen(die context.CancelCauseFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead, k.die = false, die
}

// records is how many records the journal has.
func (k *killer) records() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.next - 1
}

// deaths is how often the process died.
func (k *killer) deaths() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fired
}
