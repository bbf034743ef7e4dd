// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qemu"
)

// Kind is what sort of thing an effect is.
type Kind string

// The kinds of effects.
const (
	Command Kind = "command" // the BMC was told something that can change power or boot
	Started Kind = "start"   // QEMU was started: power on
	Reset   Kind = "reset"   // the machine was reset, by whom is in By; QEMU is a new process
	Stopped Kind = "stop"    // QEMU ended: power off
	BMCDown Kind = "bmc-exit"
	Faulted Kind = "fault"
)

// By is who caused an effect.
type By string

// Who can cause an effect.
const (
	ByBMC   By = "bmc"
	ByGuest By = "guest" // the operating system or the firmware on the machine
	ByLab   By = "lab"   // the supervisor, at its end
	ByCrash By = "crash" // nobody: QEMU ended by itself
)

// Effect is one line of effects.jsonl: the judge of what the product did to the
// machines, kept apart from what the product says.
type Effect struct {
	Time    time.Time   `json:"time"`
	Machine string      `json:"machine"`
	Kind    Kind        `json:"kind"`
	What    string      `json:"what,omitempty"`    // the command or the fault, such as "power on"
	Changed bool        `json:"changed,omitempty"` // the command changed the state asked for
	By      By          `json:"by,omitempty"`
	Boot    qemu.Source `json:"boot,omitempty"`    // what the boot that follows tries first
	Written int64       `json:"written,omitempty"` // bytes written to the disk in the run of QEMU that ended
	Writes  int64       `json:"writes,omitempty"`  // write operations of it
	Note    string      `json:"note,omitempty"`
}

// Log appends effects to a file; it may be used concurrently.
type Log struct {
	now func() time.Time
	mu  sync.Mutex
	w   io.Writer // guarded by mu
}

// NewLog returns a log that writes to w.
func NewLog(w io.Writer, now func() time.Time) *Log { return &Log{w: w, now: now} }

// Add appends one effect with the present time.
func (l *Log) Add(e Effect) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time = l.now().UTC()
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("effects: %w", err)
	}
	if _, err := l.w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("effects: %w", err)
	}
	return nil
}

// ReadEffects reads the file; none yet is an empty list.
func ReadEffects(name string) ([]Effect, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("effects: %w", err)
	}
	defer f.Close()
	return parseEffects(f)
}

// parseEffects reads lines; a torn last line, left by a crash, is dropped.
func parseEffects(r io.Reader) ([]Effect, error) {
	var out []Effect
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("effects: %w", err)
		}
		var e Effect
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("effects: line %d: %w", n, err)
		}
		out = append(out, e)
	}
}

// Stats are the counts of one machine since the state folder was made.
type Stats struct {
	Commands map[string]int `json:"commands"` // as received by the BMC: "power on", "power off", "reset", "shutdown", "boot pxe", ...
	Cycles   int            `json:"cycles"`   // a power off that changed something and a power on at most 3 s later: both are in Commands too
	Starts   int            `json:"starts"`
	Stops    map[By]int     `json:"stops"`
	Resets   map[By]int     `json:"resets"`
	Boots    struct {
		Net  int `json:"net"`
		Disk int `json:"disk"`
	} `json:"boots"` // by what the firmware was told to try first
	Disk struct {
		WrittenBytes int64 `json:"written_bytes"`
		Writes       int64 `json:"writes"`
	} `json:"disk"`
}

// cycleGap is the longest time between the two halves of a power cycle; ipmi_sim
// waits 1 s.
const cycleGap = 3 * time.Second

// CountEffects sums effects up by machine.
func CountEffects(effects []Effect) map[string]*Stats {
	out := map[string]*Stats{}
	lastOff := map[string]time.Time{}
	for _, e := range effects {
		s := out[e.Machine]
		if s == nil {
			s = newStats()
			out[e.Machine] = s
		}
		s.add(e)
		if e.Kind != Command || !e.Changed {
			continue
		}
		switch off, was := lastOff[e.Machine]; {
		case e.What == "power off":
			lastOff[e.Machine] = e.Time
		case e.What == "power on" && was:
			if e.Time.Sub(off) <= cycleGap {
				s.Cycles++
			}
			delete(lastOff, e.Machine)
		}
	}
	return out
}

func newStats() *Stats {
	return &Stats{Commands: map[string]int{}, Stops: map[By]int{}, Resets: map[By]int{}}
}

func (s *Stats) add(e Effect) {
	switch e.Kind {
	case Command:
		s.Commands[e.What]++
	case Started:
		s.Starts++
	case Reset:
		s.Resets[e.By]++
	case Stopped:
		s.Stops[e.By]++
	}
	s.Disk.WrittenBytes += e.Written
	s.Disk.Writes += e.Writes
	switch e.Boot {
	case qemu.Net:
		s.Boots.Net++
	case qemu.Disk:
		s.Boots.Disk++
	}
}
