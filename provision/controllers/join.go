// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/keys"
)

// OwnFile is the file of a controller's own key in its state folder, of mode 0600, in the form
// of age-keygen(1). It is beside the keys of the site, and in no backup.
const OwnFile = "controller.key"

// staging begins the names of folders with keys that are not compared yet.
const staging = "join-"

// OwnKey is the key that a controller is invited by.
type OwnKey struct {
	Public string // age1...
	secret *age.X25519Identity
}

// LoadOwn reads the key of this controller; NotFound where it has none.
func LoadOwn(folder string) (OwnKey, error) {
	path := filepath.Join(folder, OwnFile)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return OwnKey{}, errkind.New(errkind.NotFound, "this controller has no key of its own in %s", path).Do("`ironrail controller key` makes it.")
	case err != nil:
		return OwnKey{}, err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return OwnKey{}, errkind.New(errkind.Refused, "the controller's key %s is no file that only its owner can read: its mode is %s", path, info.Mode()).Do("Run: chmod 600 " + path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return OwnKey{}, err
	}
	all, err := age.ParseIdentities(bytes.NewReader(text))
	if err == nil {
		if id, ok := all[0].(*age.X25519Identity); ok && len(all) == 1 {
			return OwnKey{id.Recipient().String(), id}, nil
		}
	}
	return OwnKey{}, errkind.New(errkind.Corrupt, "the controller's key %s is damaged", path).Do("Put it back. If it is lost, move the file away, run `ironrail controller key`, and be invited with the new key by another name.")
}

// MakeOwn reads the key of this controller, or makes it where there is no file; made says so.
func MakeOwn(folder string, now time.Time) (k OwnKey, made bool, err error) {
	if k, err = LoadOwn(folder); errkind.Of(err) != errkind.NotFound {
		return k, false, err
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return k, false, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return k, false, err
	}
	text := fmt.Sprintf("# created: %s\n# public key: %s\n%s\n", now.UTC().Format(time.RFC3339), id.Recipient(), id)
	err = durable.Create(filepath.Join(folder, OwnFile), []byte(text), 0o600)
	if errors.Is(err, fs.ErrExist) { // another command was first
		k, err = LoadOwn(folder)
		return k, false, err
	}
	return OwnKey{id.Recipient().String(), id}, true, err
}

// Opened are the keys of a site that were encrypted to this controller, and compared with what
// the state records. They are in a folder of their own until Install or Discard.
type Opened struct {
	Member Member
	names  []string
	bundle keys.Bundle
	folder string // of the state
	staged string // where they were written for being compared
}

// Open decrypts a file that Invite returned, and compares it with the state. It refuses one
// that is not the last that was recorded for this controller, and keys that are not those
// that the state records. What this controller has of keys is not changed.
func Open(ctx context.Context, r state.Reader, folder, site string, file []byte) (o Opened, err error) {
	own, err := LoadOwn(folder)
	if err != nil {
		return o, err
	}
	o = Opened{folder: folder}
	if o.Member, err = findFile(ctx, r, own, file); err != nil {
		return o, err
	}
	if o.bundle, err = keys.Decrypt(bytes.NewReader(file), "the file", own.secret); err != nil {
		return o, err
	}
	o.names = o.bundle.Names()
	if o.staged, err = os.MkdirTemp(folder, staging); err != nil {
		return o, err
	}
	defer func() {
		if err != nil {
			o.Discard()
		}
	}()
	for _, name := range o.names {
		if err := create(o.staged, name, o.bundle.Keys[name]); err != nil {
			return o, err
		}
	}
	have, err := keys.Load(o.staged)
	if err != nil {
		return o, err
	}
	return o, compare(ctx, r, site, have.Fingerprints())
}

// findFile returns whom the state has a file recorded for.
func findFile(ctx context.Context, r state.Reader, own OwnKey, file []byte) (Member, error) {
	all, err := List(ctx, r)
	if err != nil {
		return Member{}, err
	}
	known := false
	for _, m := range all {
		switch {
		case m.File == Fingerprint(file) && m.Public == own.Public:
			return m, nil
		case m.File == Fingerprint(file):
			return m, errkind.New(errkind.Refused, "the file was made for controller %s, which has another key than this one", m.Name).
				Do("Take it there; for this controller, give what `ironrail controller key` prints to `ironrail controller invite` on a member.")
		}
		known = known || m.Public == own.Public
	}
	if known {
		return Member{}, errkind.New(errkind.Refused, "the file is not the last one that was made for this controller, or it is damaged").Do(again)
	}
	return Member{}, errkind.New(errkind.Refused, "the state has no invitation of this controller, whose key is %s", own.Public).Do("Run `ironrail controller invite` with that key on a member.")
}

// Discard removes what Open wrote.
func (o Opened) Discard() { _ = os.RemoveAll(o.staged) }

// Install puts the keys into the state folder, which this process owns, and returns the
// names of those that were not there. It refuses to replace a key by another one.
// After a crash it is done again, with the same file.
func (o Opened) Install() (added []string, err error) {
	dir := filepath.Join(o.folder, keys.Folder)
	left, err := filepath.Glob(filepath.Join(o.folder, staging+"*"))
	if err != nil {
		return nil, err
	}
	for _, path := range left { // of a process that died
		if path != o.staged {
			_ = os.RemoveAll(path)
		}
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(o.staged, dir); err != nil {
			return nil, err
		}
		return o.names, durable.SyncFolder(o.folder)
	}
	if err := keys.CheckModes(dir); err != nil {
		return nil, err
	}
	for _, name := range o.names {
		path := filepath.Join(dir, name)
		old, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			added = append(added, name)
		case err != nil:
			return nil, err
		case !bytes.Equal(old, o.bundle.Keys[name]):
			return nil, errkind.New(errkind.Refused, "this controller has another key already: %s", path).
				Do("Where nothing trusts it, such as after a `plan` before the site's state was reached, move the folder " + dir + " away, and join again.")
		}
	}
	for _, name := range added {
		if err := create(dir, name, o.bundle.Keys[name]); err != nil {
			return nil, err
		}
	}
	return added, nil
}

// create makes a key file in a folder of keys durably.
func create(dir, name string, content []byte) error {
	path := filepath.Join(dir, name)
	if folder := filepath.Dir(path); folder != dir {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := durable.SyncFolder(dir); err != nil {
			return err
		}
	}
	return durable.Create(path, content, 0o600)
}
