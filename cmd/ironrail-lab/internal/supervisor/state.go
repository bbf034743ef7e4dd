// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/process"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qemu"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Lab is what `up` writes and everything else reads: which namespace and which
// machines belong to a state folder. It holds no secret.
type Lab struct {
	Name     string         `json:"name"` // of the network namespace
	Dir      string         `json:"dir"`  // the state folder, absolute
	Machines []rack.Machine `json:"machines"`
}

// The files of the state folder, beside one folder a machine.
const (
	labFile       = "lab.json"
	processFile   = "processes.json"
	faultFile     = "faults.json"
	disksFile     = "disks.csv"
	lockFile      = "lock"
	socketFile    = "lab.sock"
	effectsFile   = "effects.jsonl"
	supervisorLog = "supervisor.log"
)

// Socket returns the path of the control socket.
func (l Lab) Socket() string { return filepath.Join(l.Dir, socketFile) }

// Effects returns the path of the effects file.
func (l Lab) Effects() string { return filepath.Join(l.Dir, effectsFile) }

// LoadDisks reads the disks that the machines have from their next start on, each
// machine's system disk first.
func (l Lab) LoadDisks() ([]rack.Disk, error) {
	return rack.LoadDisks(filepath.Join(l.Dir, disksFile), l.Machines)
}

// SaveDisks keeps a file of disks that has been read with success.
func (l Lab) SaveDisks(file []byte) error {
	name := filepath.Join(l.Dir, disksFile)
	if err := os.WriteFile(name+".new", file, 0o600); err != nil {
		return fmt.Errorf("disks: %w", err)
	}
	return os.Rename(name+".new", name)
}

// LogFile returns the path of the supervisor's own log.
func (l Lab) LogFile() string { return filepath.Join(l.Dir, supervisorLog) }

// SOLPort returns the loopback port of the i-th machine's serial port; the
// namespace has a loopback of its own.
func SOLPort(i int) int { return 9001 + i }

// Load reads the lab of a state folder.
func Load(dir string) (Lab, error) {
	var l Lab
	err := readJSON(filepath.Join(dir, labFile), &l)
	if errors.Is(err, fs.ErrNotExist) {
		return l, errkind.New(errkind.Refused, "no lab in %s", dir).Do("name its state folder with --dir, or start one with ironrail-lab up")
	}
	return l, err
}

// Save writes the lab.
func (l Lab) Save() error { return writeJSON(filepath.Join(l.Dir, labFile), l) }

// Forget removes the record of a lab that is down; purge also removes disks,
// consoles, variables and effects. Files that the lab did not make are kept.
func (l Lab) Forget(purge bool) error {
	names := []string{socketFile, processFile, faultFile, disksFile}
	if purge {
		names = append(names, lockFile, effectsFile, supervisorLog)
		disks, err := filepath.Glob(filepath.Join(l.Dir, "*", "disk.raw")) // also of machines of an earlier lab
		if err != nil {
			return fmt.Errorf("state %s: %w", l.Dir, err)
		}
		for _, d := range disks {
			names = append(names, filepath.Base(filepath.Dir(d)))
		}
	}
	for _, m := range l.Machines { // the password lies in there
		names = append(names, filepath.Join(m.Name, "bmc"), filepath.Join(m.Name, "qmp.sock"))
	}
	names = append(names, labFile) // last: without it nobody would look again
	for _, n := range names {
		if err := os.RemoveAll(filepath.Join(l.Dir, n)); err != nil {
			return fmt.Errorf("state %s: %w", l.Dir, err)
		}
	}
	if purge {
		_ = os.Remove(l.Dir) // only if it is empty now
	}
	return nil
}

// WasLab reports whether the folder holds what a lab that is down leaves: only
// there may a purge remove machines without a record of them.
func WasLab(dir string) bool {
	for _, n := range []string{lockFile, effectsFile} {
		if _, err := os.Stat(filepath.Join(dir, n)); err != nil {
			return false
		}
	}
	return true
}

// Lock takes the state folder's lock; whoever holds it is the supervisor. It is
// freed by the kernel when the holder ends, however that happens.
func Lock(dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state %s: lock: %w", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, errkind.New(errkind.Refused, "state %s: a supervisor runs already", dir).Do("end it with ironrail-lab down, or use another --dir")
	}
	return func() {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // a child that is being started has the file open until it is
		_ = f.Close()
	}, nil
}

// Processes remembers which processes the lab started, for a `down` after a
// crash. It may be used concurrently.
type Processes struct {
	file string
	mu   sync.Mutex
	ids  map[string]process.ID // guarded by mu
}

// LoadProcesses reads the record of a state folder; none yet is an empty one.
func LoadProcesses(dir string) (*Processes, error) {
	p := &Processes{file: filepath.Join(dir, processFile), ids: map[string]process.ID{}}
	if err := readJSON(p.file, &p.ids); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return p, nil
}

// Add records a process that has just been started under a name.
func (p *Processes) Add(name string, pid int) error {
	id, err := process.Of(pid)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids[name] = id
	return writeJSON(p.file, p.ids)
}

// Remove forgets a process that has ended.
func (p *Processes) Remove(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ids, name)
	return writeJSON(p.file, p.ids)
}

// Alive returns those that still run, by name.
func (p *Processes) Alive() map[string]process.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]process.ID{}
	for name, id := range p.ids {
		if id.Alive() {
			out[name] = id
		}
	}
	return out
}

// FilesOf returns the files of one machine.
func (l Lab) FilesOf(machine string) qemu.Files { return qemu.FilesIn(l.Dir, machine) }

func readJSON(name string, v any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// writeJSON replaces the file in one step.
func writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.WriteFile(name+".new", append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
