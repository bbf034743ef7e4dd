// SPDX-License-Identifier: Apache-2.0

// Package control is the one owner of a state folder and the way to talk to it:
// a lock, a note of who holds it, and a Unix socket over which other commands
// ask for status, hold nodes and follow events. Only the user who owns the
// folder reaches the socket.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
)

// The files of a state folder that belong to this package.
const (
	lockFile   = "lock"
	ownerFile  = "owner.json"
	socketFile = "control.sock"
)

// Identity says who owns a state folder.
type Identity struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"` // apply, serve
	Started time.Time `json:"started"`

	// Resident: it stays when no run is active, and lends the state; see Lender.
	Resident bool `json:"resident,omitempty"`
}

// String reads "apply (pid 123) since 2026-01-02 15:04:05".
func (i Identity) String() string {
	if i.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("%s (pid %d) since %s", i.Command, i.PID, i.Started.Local().Format(time.DateTime))
}

// Owner is the ownership of a state folder. It ends with Release, or with the
// process however it dies.
type Owner struct {
	Identity
	dir  string
	lock *os.File
}

// AcquireFolder takes the state folder dir for this process, and makes it when it is
// not there. It does not wait: the error is of kind refused and names the owner
// when there is one. What a dead owner left behind is cleared away.
func AcquireFolder(dir, command string, now time.Time) (*Owner, error) {
	return acquire(dir, Identity{PID: os.Getpid(), Command: command, Started: now})
}

// AcquireToStay is AcquireFolder of a process that lends the state: its control socket is
// that of a Lender.
func AcquireToStay(dir, command string, now time.Time) (*Owner, error) {
	return acquire(dir, Identity{PID: os.Getpid(), Command: command, Started: now, Resident: true})
}

func acquire(dir string, i Identity) (*Owner, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if err := takeLock(f); err != nil {
		_ = f.Close()
		return nil, explainLockError(dir, err)
	}
	o := &Owner{Identity: i, dir: dir, lock: f}
	if err := o.announce(); err != nil {
		return nil, errors.Join(err, o.Release())
	}
	return o, nil
}

func explainLockError(dir string, err error) error {
	if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("state folder %s: lock: %w", dir, err)
	}
	who := readIdentity(dir)
	e := errkind.New(errkind.Refused, "state folder %s belongs to %s", dir, who)
	if who.Resident {
		return e.Do("It stays until it is stopped: stop it for the time of this command, such as with `systemctl stop ironrail`.")
	}
	return e.Do("Ask it with ironrail status, or wait until it ends.")
}

// announce writes who owns the folder, whole or not at all, and removes the
// socket of a dead owner.
func (o *Owner) announce() error {
	raw, err := json.Marshal(o.Identity)
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	path := filepath.Join(o.dir, ownerFile)
	if err := os.WriteFile(path+".new", append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	if err := os.Remove(filepath.Join(o.dir, socketFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state folder: %w", err)
	}
	return nil
}

// Release gives the folder back. Calling it again does nothing.
func (o *Owner) Release() error {
	if o.lock == nil {
		return nil
	}
	_ = os.Remove(filepath.Join(o.dir, ownerFile))
	_ = os.Remove(filepath.Join(o.dir, socketFile))
	// The lock is of the open file description: a program that is being started at this
	// very moment holds it too, until it runs, and closing here would not end it.
	unlocked := releaseLock(o.lock)
	err := o.lock.Close()
	o.lock = nil
	return errors.Join(unlocked, err)
}

// FindOwner returns the living owner of a state folder; false when it has none, also
// when a dead one left its note.
func FindOwner(dir string) (Identity, bool, error) {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, fmt.Errorf("state folder: %w", err)
	}
	defer f.Close()
	held, err := isLocked(f)
	if err != nil {
		return Identity{}, false, fmt.Errorf("state folder %s: lock: %w", dir, err)
	}
	if !held {
		return Identity{}, false, nil
	}
	return readIdentity(dir), true, nil
}

// takeLock takes the lock of an owner, which ends with the file, however the process dies.
// It is an open file description lock (fcntl(2)): whoever only looks can ask for it
// without taking it, so that looking never refuses an owner that begins. The flock
// beside it is for an ironrail that knows no other.
func takeLock(f *os.File) error {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l); err != nil {
		return err
	}
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// releaseLock ends both locks.
func releaseLock(f *os.File) error {
	l := unix.Flock_t{Type: unix.F_UNLCK, Whence: io.SeekStart}
	return errors.Join(unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l), syscall.Flock(int(f.Fd()), syscall.LOCK_UN))
}

// isLocked reports whether an owner has the lock. It takes no lock itself.
func isLocked(f *os.File) (bool, error) {
	l := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l); err != nil {
		return false, err
	}
	return l.Type != unix.F_UNLCK, nil
}

// readIdentity reads the note of the owner; the zero Identity when there is none.
func readIdentity(dir string) (i Identity) {
	raw, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if err != nil || json.Unmarshal(raw, &i) != nil {
		return Identity{}
	}
	return i
}
