// SPDX-License-Identifier: Apache-2.0

// Package controllers moves the keys of a site to further controllers that share its state:
// encrypted to a key of each, in a file. The state has public halves and fingerprints only.
package controllers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/provision/keys"
)

// kind is that of the objects of a state that record controllers.
const kind = "controller"

// names are the names that a controller may have.
var names = lazyregexp.New(`^[a-z0-9][a-z0-9.-]{0,62}$`)

// Member is a controller that the keys of the site were encrypted to, as the state has it.
type Member struct {
	Name   string            `json:"name"`
	Public string            `json:"public"` // its public key: age1...
	Keys   map[string]string `json:"keys"`   // fingerprints of the site's keys that it was given, by their files
	File   string            `json:"file"`   // SHA-256 of the encrypted file
	At     time.Time         `json:"at"`
	By     string            `json:"by"` // the operator, and the controller that did it
}

// Fingerprint is that of a public key, or of a file.
func Fingerprint[T string | []byte](content T) string {
	sum := sha256.Sum256([]byte(content))
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// List returns the controllers that a state records, by their names.
func List(ctx context.Context, r state.Reader) ([]Member, error) {
	list := []Member{}
	err := state.Each(ctx, r, kind, func(_ state.Key, m Member) { list = append(list, m) })
	return list, err
}

// Invitation is what a member of the site is asked for: to encrypt the keys in its state folder
// to the key of another controller.
type Invitation struct {
	Name, To     string // the controller and its public key
	Site, Folder string // of the member that encrypts
	By           string
	At           time.Time
}

// Check refuses an invitation whose name or key cannot be one.
func (v Invitation) Check() error {
	if !names.MatchString(v.Name) {
		return errkind.New(errkind.Invalid, "%q is no name of a controller: it has small letters, digits, '-' and '.', at most 63", v.Name)
	}
	_, err := v.recipient()
	return err
}

func (v Invitation) recipient() (*age.X25519Recipient, error) {
	to, err := age.ParseX25519Recipient(v.To)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "%q is no public key of a controller: %w", v.To, err).Do("Give what `ironrail controller key` prints on the new controller.")
	}
	return to, nil
}

// Invite encrypts the keys of the site, and records for whom before it returns them: of no
// file is it unknown who can read it. Where the same controller was invited before, only
// the new file is accepted by it from then on.
func Invite(ctx context.Context, store state.Store, fence state.Fence, v Invitation) (m Member, file []byte, err error) {
	if err := v.Check(); err != nil {
		return m, nil, err
	}
	have, bundle, err := load(filepath.Join(v.Folder, keys.Folder))
	if err != nil {
		return m, nil, err
	}
	if err := have.BindIdentity(ctx, store, fence, v.Site); err != nil {
		return m, nil, err
	}
	version, err := v.find(ctx, store)
	if err != nil {
		return m, nil, err
	}
	to, err := v.recipient()
	if err != nil {
		return m, nil, err
	}
	var encrypted bytes.Buffer
	if err := bundle.Encrypt(&encrypted, to); err != nil {
		return m, nil, fmt.Errorf("keys for controller %s: %w", v.Name, err)
	}
	m = Member{Name: v.Name, Public: v.To, Keys: have.Fingerprints(), File: Fingerprint(encrypted.Bytes()), At: v.At.UTC(), By: v.By}
	put, err := state.PutOf(state.Key{Kind: kind, Name: v.Name}, m)
	if err != nil {
		return m, nil, err
	}
	put.Want = version
	note := state.Record{Kind: state.Note, Time: m.At}.With(fmt.Sprintf("%s encrypted the keys of the site to controller %s, whose key is %s", v.By, v.Name, v.To))
	_, err = store.Append(ctx, fence, state.Batch{Puts: []state.Put{put}, Records: []state.Record{note}})
	return m, encrypted.Bytes(), err
}

// find returns the version of the record of a controller that is invited. A name has one key,
// and a key one name: else who has which keys could not be said.
func (v Invitation) find(ctx context.Context, r state.Reader) (uint64, error) {
	old, version, err := state.Get[Member](ctx, r, state.Key{Kind: kind, Name: v.Name})
	if err != nil {
		return 0, err
	}
	if version != state.Absent && old.Public != v.To {
		return 0, errkind.New(errkind.Refused, "controller %s is recorded with another key: %s", v.Name, old.Public).Do("Give the new one another name: what the old one knows stays on record.")
	}
	all, err := List(ctx, r)
	for _, m := range all {
		if m.Name != v.Name && m.Public == v.To {
			return 0, errkind.New(errkind.Refused, "this key is recorded as that of controller %s", m.Name).Do("Use that name; each controller has a key of its own.")
		}
	}
	return version, err
}

// load reads the keys of a folder, and makes none.
func load(dir string) (k keys.Keys, b keys.Bundle, err error) {
	missing, err := keys.ListMissing(dir)
	if err == nil && len(missing) > 0 {
		err = errkind.New(errkind.NotFound, "this controller has no keys of the site: %s has no %s", dir, missing[0]).Do("Do it on a controller that has them.")
	}
	if err != nil {
		return k, b, err
	}
	if b, err = keys.Collect(dir); err != nil {
		return k, b, err
	}
	k, err = keys.Load(dir)
	return k, b, err
}

// compare refuses keys that are not all those that the state records.
func compare(ctx context.Context, r state.Reader, site string, have map[string]string) error {
	if err := keys.CheckSite(ctx, r, site); err != nil {
		return err
	}
	id, _, err := state.Get[keys.Identity](ctx, r, keys.IdentityKey)
	if err != nil || maps.Equal(id.Keys, have) {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(id.Keys)) {
		if have[name] != id.Keys[name] {
			return errkind.New(errkind.Mismatch, "the file has not the %s that the nodes of the site trust (%s)", name, id.Keys[name]).Do(again)
		}
	}
	return errkind.New(errkind.Mismatch, "the file has keys that the state does not record").Do(again)
}

// again is what to do about a file that is not what it should be.
const again = "Run `ironrail controller invite` on a member again, and take the file that it writes."
