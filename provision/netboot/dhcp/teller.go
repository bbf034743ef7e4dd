package dhcp

import (
	"fmt"
	"sync"
	"time"

	"github.com/ironrail/ironrail/provision/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Limits of what the witness is told. A firmware that loops, or somebody who
// sends random MACs, must not fill the event files.
const (
	tellEvery   = 10 * time.Second // the same thing about the same client
	tellUnknown = 20               // first-time unknown clients each tellEvery, all together
	tellMax     = 4096             // remembered clients and words
)

// teller passes evidence on, at most once in tellEvery for the same MAC, word
// and refusal; what was left out is counted in the next one. It is safe for
// concurrent use.
type teller struct {
	witness boot.Witness

	mu      sync.Mutex
	last    map[tellKey]*told // guarded by mu
	unknown int               // unknown clients told since window; guarded by mu
	window  time.Time         // guarded by mu
}

type tellKey struct {
	mac  addr.MAC
	what string
	file string // offers of different programs are different things
}

type told struct {
	at      time.Time
	omitted int
}

func (t *teller) tell(d Decision, now time.Time) {
	if d.What == "" {
		return
	}
	omitted, ok := t.admit(tellKey{d.MAC, d.What, d.File}, d.Client.Node == "", now)
	if !ok {
		return
	}
	e := d.Evidence(now)
	if omitted > 0 {
		e.Detail = fmt.Sprintf("%s (and %d times before)", e.Detail, omitted)
	}
	t.witness.Saw(e)
}

// admit decides whether to tell, and how many of the same were left out since.
func (t *teller) admit(k tellKey, unknown bool, now time.Time) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.last[k]; e != nil {
		if now.Sub(e.at) < tellEvery {
			e.omitted++
			return 0, false
		}
		n := e.omitted
		*e = told{at: now}
		return n, true
	}
	if now.Sub(t.window) >= tellEvery {
		t.window, t.unknown = now, 0
	}
	if unknown {
		if t.unknown++; t.unknown > tellUnknown {
			return 0, false
		}
	}
	if t.last == nil || len(t.last) >= tellMax {
		t.last = map[tellKey]*told{}
	}
	t.last[k] = &told{at: now}
	return 0, true
}
