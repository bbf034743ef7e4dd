// SPDX-License-Identifier: Apache-2.0

package secureboot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// Vars are shim's variables in the firmware, by names without its GUID.
type Vars interface {
	Set(name string, value []byte) error
	Get(name string) ([]byte, error) // fs.ErrNotExist where there is none
}

// Request has shim start MokManager at the node's next boot, which enrols a certificate for whoever
// knows the password (shim, mok.c: check_mok_request). What it writes last is what counts, and all
// is read back: firmware may be out of room. It may be called again.
func Request(vars Vars, p wire.EnrolParams) error {
	if certs, damaged := certificates(p.List); damaged || len(certs) == 0 || len(p.Auth) != sha256.Size || p.Countdown <= 0 {
		return errkind.New(errkind.Internal, "the request is damaged: %d certificates, %d bytes of authentication, a countdown of %d s", len(certs), len(p.Auth), p.Countdown)
	}
	for _, v := range []struct {
		name  string
		value []byte
	}{
		{"MokTimeout", binary.LittleEndian.AppendUint32(nil, uint32(p.Countdown))},
		{"MokAuth", p.Auth},
		{"MokNew", p.List},
	} {
		err := vars.Set(v.name, v.value)
		if err == nil {
			var got []byte
			if got, err = vars.Get(v.name); err == nil && !bytes.Equal(got, v.value) {
				err = fmt.Errorf("it reads back with %d other bytes", len(got))
			}
		}
		if err != nil {
			return errkind.New(errkind.Refused, "the firmware does not keep variable %s: %w", v.name, err).
				Do("Its variables may be full: reset them to factory defaults in its setup, or enrol the certificate there.")
		}
	}
	return nil
}

// Dir are shim's variables below a folder of efivarfs.
type Dir string

var _ Vars = Dir("")

// lasting are the attributes of the variables: kept without power, and seen before and after the
// firmware hands over.
const lasting = 1 | 2 | 4

// Get reads a variable.
func (d Dir) Get(name string) ([]byte, error) {
	b, err := os.ReadFile(d.path(name))
	if err == nil && len(b) < 4 {
		err = fmt.Errorf("variable %s has %d bytes", name, len(b))
	}
	if err != nil {
		return nil, err
	}
	return b[4:], nil
}

// Set writes a variable in the one call that efivarfs takes. One that is there is taken away
// before: the kernel keeps it from being written to (efivarfs.rst, "immutable").
func (d Dir) Set(name string, value []byte) error {
	if err := makeMutable(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", name, err)
	}
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(append(binary.LittleEndian.AppendUint32(nil, lasting), value...))
	return errors.Join(err, f.Close())
}

func (d Dir) path(name string) string { return filepath.Join(string(d), name+shim) }
