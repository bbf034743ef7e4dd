// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/keys"
)

const (
	site   = "paris"
	volume = "6c616230-0000-4000-8000-000000000001"
)

// member is a controller with the keys of a site, and its state.
type member struct {
	folder string
	store  *state.Bolt
	fence  state.Fence
}

func newMember(t *testing.T) member {
	t.Helper()
	m := member{folder: t.TempDir()}
	if _, err := keys.Open(m.folder, false); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.RecoveryIn(filepath.Join(m.folder, keys.Folder)).Make("n1", "scratch", volume); err != nil {
		t.Fatal(err)
	}
	var err error
	if m.store, err = state.Open(filepath.Join(m.folder, "state.db")); err == nil {
		m.fence, err = m.store.Claim(t.Context(), "test")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.store.Close() })
	return m
}

// invite makes a file for a key.
func (m member) invite(t *testing.T, name, to string) ([]byte, error) {
	t.Helper()
	_, file, err := Invite(t.Context(), m.store, m.fence, Invitation{Name: name, To: to, Site: site, Folder: m.folder, By: "ann on head1", At: time.Unix(1e9, 0)})
	return file, err
}

// join opens a file on another controller, and installs it.
func (m member) join(t *testing.T, folder string, file []byte) ([]string, error) {
	t.Helper()
	o, err := Open(t.Context(), m.store, folder, site, file)
	if err != nil {
		return nil, err
	}
	defer o.Discard()
	return o.Install()
}

// newController is another controller with a key of its own.
func newController(t *testing.T) (folder, public string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), ".ironrail")
	k, made, err := MakeOwn(folder, time.Unix(1e9, 0))
	if err != nil || !made {
		t.Fatalf("made %v, %v", made, err)
	}
	return folder, k.Public
}

// wants checks that a refusal is of a kind, says something, and what to do.
func wants(t *testing.T, err error, k errkind.Kind, text string) {
	t.Helper()
	if errkind.Of(err) != k || !strings.Contains(err.Error(), text) || errkind.Action(err) == "" {
		t.Errorf("got %v (do: %s), want %v with %q and an action", err, errkind.Action(err), k, text)
	}
}

// TestJoin: the keys of a member arrive on another controller as they were, readable by
// nobody else; the state has none of them.
func TestJoin(t *testing.T) {
	t.Parallel()
	m := newMember(t)
	folder, public := newController(t)
	file, err := m.invite(t, "head2", public)
	if err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(folder, staging+"of-a-crash")
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	added, err := m.join(t, folder, file)
	want := append(keys.ListFiles(), keys.RecoveryFolder+"/"+volume+".key")
	if err != nil || !slices.Equal(added, want) {
		t.Fatalf("joined with %v, %v", added, err)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, staging+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	db, err := os.ReadFile(filepath.Join(m.folder, "state.db"))
	if err != nil || !bytes.Contains(db, []byte(public)) {
		t.Fatalf("the state has no public key of the controller: %v", err)
	}
	own, err := os.ReadFile(filepath.Join(folder, OwnFile))
	if err != nil {
		t.Fatal(err)
	}
	secrets := [][]byte{own[bytes.Index(own, []byte("AGE-SECRET-KEY-")):], file}
	for _, name := range want {
		from, err := os.ReadFile(filepath.Join(m.folder, keys.Folder, name))
		if err != nil {
			t.Fatal(err)
		}
		to, err := os.ReadFile(filepath.Join(folder, keys.Folder, name))
		info, _ := os.Stat(filepath.Join(folder, keys.Folder, name))
		if err != nil || !bytes.Equal(from, to) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, the same: %v", name, info, err, bytes.Equal(from, to))
		}
		block, _ := pem.Decode(from)
		secrets = append(secrets, block.Bytes, []byte(base64.StdEncoding.EncodeToString(block.Bytes)))
	}
	for i, s := range secrets {
		if len(s) < 16 || bytes.Contains(db, bytes.TrimSpace(s)) || i != 1 && bytes.Contains(file, bytes.TrimSpace(s)) {
			t.Errorf("secret %d is in the state or readable in the file", i)
		}
	}
	if added, err := m.join(t, folder, file); err != nil || len(added) != 0 {
		t.Errorf("joined again: %v, %v", added, err)
	}
}

// TestJoinAdds: a controller that has joined gets what the site has got since, and what it lost.
func TestJoinAdds(t *testing.T) {
	t.Parallel()
	m := newMember(t)
	folder, public := newController(t)
	file, err := m.invite(t, "head2", public)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.join(t, folder, file); err != nil {
		t.Fatal(err)
	}
	k, err := keys.Open(m.folder, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.store.Close(); err != nil { // AddModules reads the file
		t.Fatal(err)
	}
	if err := k.AddModules(m.folder, site, time.Now()); err != nil {
		t.Fatal(err)
	}
	if m.store, err = state.Open(filepath.Join(m.folder, "state.db")); err == nil {
		m.fence, err = m.store.Claim(t.Context(), "test")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.store.Close() })
	newer, err := m.invite(t, "head2", public)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.join(t, folder, file)
	wants(t, err, errkind.Refused, "not the last one")
	if err := os.Remove(filepath.Join(folder, keys.Folder, keys.TLSFile)); err != nil {
		t.Fatal(err)
	}
	if added, err := m.join(t, folder, newer); err != nil || !slices.Equal(added, []string{keys.TLSFile, keys.ModulesFile}) {
		t.Errorf("added %v, %v", added, err)
	}
}

// TestJoinRefuses: no file but the one that was recorded for a controller, and no keys but those
// of the state, get into its folder.
func TestJoinRefuses(t *testing.T) {
	t.Parallel()
	m := newMember(t)
	folder, public := newController(t)
	other, otherPublic := newController(t)
	file, err := m.invite(t, "head2", public)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.join(t, other, file)
	wants(t, err, errkind.Refused, "made for controller head2")
	_, err = m.join(t, other, []byte("age-encryption.org/v1\n"))
	wants(t, err, errkind.Refused, "no invitation of this controller")
	_, err = m.join(t, folder, append(slices.Clone(file), 0))
	wants(t, err, errkind.Refused, "not the last one")
	_, err = m.join(t, t.TempDir(), file)
	wants(t, err, errkind.NotFound, "no key of its own")

	_, err = m.invite(t, "head3", public)
	wants(t, err, errkind.Refused, "recorded as that of controller head2")
	_, err = m.invite(t, "head2", otherPublic)
	wants(t, err, errkind.Refused, "recorded with another key")
	_, err = m.invite(t, "head3", public[:20])
	wants(t, err, errkind.Invalid, "no public key")
	if _, err = m.invite(t, "../head3", otherPublic); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a name: %v", err)
	}

	if _, err := keys.Open(folder, false); err != nil { // as a plan before it joined does
		t.Fatal(err)
	}
	before, _ := os.ReadFile(filepath.Join(folder, keys.Folder, keys.BootFile))
	_, err = m.join(t, folder, file)
	wants(t, err, errkind.Refused, "has another key already")
	if after, _ := os.ReadFile(filepath.Join(folder, keys.Folder, keys.BootFile)); !bytes.Equal(before, after) || len(after) == 0 {
		t.Error("a key was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(folder, staging+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	if err := os.Remove(filepath.Join(m.folder, keys.Folder, keys.BootFile)); err != nil {
		t.Fatal(err)
	}
	_, err = m.invite(t, "head2", public)
	wants(t, err, errkind.NotFound, "has no keys of the site")
	if _, err := keys.Renew(t.Context(), m.store, m.fence, filepath.Join(m.folder, keys.Folder), site); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(folder, keys.Folder)); err != nil {
		t.Fatal(err)
	}
	_, err = m.join(t, folder, file)
	wants(t, err, errkind.Mismatch, "has not the boot.key")
	if _, err := os.Stat(filepath.Join(folder, keys.Folder)); err == nil {
		t.Error("keys that nothing trusts were installed")
	}
}

// TestInviteChecksKeys: a controller with keys that the nodes do not trust gives them to nobody.
func TestInviteChecksKeys(t *testing.T) {
	t.Parallel()
	m := newMember(t)
	_, public := newController(t)
	if _, err := m.invite(t, "head2", public); err != nil {
		t.Fatal(err)
	}
	wrong := t.TempDir()
	if _, err := keys.Open(wrong, false); err != nil {
		t.Fatal(err)
	}
	m.folder = wrong
	_, err := m.invite(t, "head2", public)
	wants(t, err, errkind.Refused, "is another one")
	all, err := List(t.Context(), m.store)
	if err != nil || len(all) != 1 || all[0].Name != "head2" || all[0].Public != public || len(all[0].Keys) != len(keys.ListFiles()) || all[0].By != "ann on head1" {
		t.Errorf("on record: %+v, %v", all, err)
	}
}

// TestOwnKey: a controller's key is made once, and no other in the place of one that cannot be used.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	folder, public := newController(t)
	path := filepath.Join(folder, OwnFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if k, made, err := MakeOwn(folder, time.Now()); err != nil || made || k.Public != public {
		t.Errorf("again: %v, made %v, %v", k.Public, made, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, _, err := MakeOwn(folder, time.Now())
	wants(t, err, errkind.Refused, "only its owner can read")
	if err := os.WriteFile(path, []byte("AGE-SECRET-KEY-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, made, err := MakeOwn(folder, time.Now())
	wants(t, err, errkind.Corrupt, "is damaged")
	if made || strings.Contains(err.Error(), "AGE-SECRET") {
		t.Errorf("made %v, %v", made, err)
	}
}
