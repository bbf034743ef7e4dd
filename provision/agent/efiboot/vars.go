// SPDX-License-Identifier: Apache-2.0

package efiboot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Folder is where the kernel shows the variables of the firmware.
const Folder = "sys/firmware/efi/efivars"

// global is the vendor GUID of the variables that the UEFI specification defines,
// as efivarfs appends it to their names.
const global = "-8be4df61-93ca-11d2-aa0d-00e098032b8c"

// lasting are the attributes of boot variables: kept without power, and seen before
// and after the firmware hands over.
const lasting = 1 | 2 | 4

// ErrNone means that there are no variables: no UEFI, or efivarfs is not mounted.
var ErrNone = errors.New("the firmware shows no variables")

// Dir are the variables below a folder of efivarfs.
type Dir string

var _ Vars = Dir("")

// Names lists the global variables.
func (d Dir) Names() ([]string, error) { return namesOf(sysfs.Dir(string(d)), ".") }

// Get reads a variable.
func (d Dir) Get(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(string(d), name+global))
	if err != nil {
		return nil, err
	}
	return value(name, b)
}

// Set writes a variable in the one call that efivarfs takes.
func (d Dir) Set(name string, v []byte) error {
	b := append(binary.LittleEndian.AppendUint32(nil, lasting), v...)
	f, err := os.OpenFile(filepath.Join(string(d), name+global), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// Shown are the variables that a tree shows, for reading.
type Shown struct{ FS sysfs.FS }

var _ Vars = Shown{}

// Names lists the global variables.
func (s Shown) Names() ([]string, error) { return namesOf(s.FS, Folder) }

// Get reads a variable.
func (s Shown) Get(name string) ([]byte, error) {
	if !s.FS.Exists(Folder, name+global) {
		return nil, fs.ErrNotExist
	}
	return value(name, s.FS.Bytes(Folder, name+global))
}

// Set is refused.
func (Shown) Set(string, []byte) error { return fs.ErrPermission }

// Order returns what the firmware shows of its boot order; nil where it shows nothing.
func (s Shown) Order() *wire.BootOrder {
	entries, current, err := Read(s)
	if err != nil {
		return nil
	}
	order, err := numbers(s, "BootOrder")
	out := &wire.BootOrder{Current: current, Entries: list(entries, order)}
	if err != nil {
		out.Problem = err.Error()
	}
	return out
}

func namesOf(tree sysfs.FS, dir string) (names []string, err error) {
	for _, n := range tree.Names(dir) {
		if n, ok := strings.CutSuffix(n, global); ok {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil, ErrNone
	}
	return names, nil
}

// value takes the attributes off.
func value(name string, b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("variable %s has %d bytes", name, len(b))
	}
	return b[4:], nil
}
