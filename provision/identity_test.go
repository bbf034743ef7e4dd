// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/keys"
)

// knownSite is a site on disk whose state knows its keys and an accepted node.
func knownSite(t *testing.T) (inv *inventory.Inventory, dir string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir, one)
	store, err := state.Open(StatePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Keys.BindIdentity(t.Context(), store, fence, s.Inv.Site.Name); err != nil {
		t.Fatal(err)
	}
	put, err := state.PutOf(state.NodeKey("n1"), state.Node{Name: "n1", Accepted: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Append(t.Context(), fence, state.Batch{Puts: []state.Put{put}}); err != nil {
		t.Fatal(err)
	}
	return s.Inv, dir
}

// refusedWith wants a refusal that says a text and what to do.
func refusedWith(t *testing.T, what string, err error, text string) {
	t.Helper()
	if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), text) || errkind.Action(err) == "" {
		t.Errorf("%s: %v (%s), want %q", what, err, errkind.Action(err), text)
	}
}

// planKnown plans a site that is opened to be looked at.
func planKnown(inv *inventory.Inventory, dir string) error {
	s, err := Open(inv, Options{Look: true})
	if err != nil {
		return err
	}
	r, err := state.OpenReadOnly(StatePath(dir))
	if err != nil {
		return err
	}
	defer r.Close()
	_, _, err = s.Plan(context.Background(), r, PlanOptions{Now: time.Now()})
	return err
}

// TestKeysAreNotMadeAnew: beside a state that knows nodes a key that is missing is
// neither made by a plan nor by an apply, also when the state is of an ironrail that
// did not record fingerprints.
func TestKeysAreNotMadeAnew(t *testing.T) {
	t.Parallel()
	for _, gone := range append(keys.ListFiles(), "") { // "": all of them
		inv, dir := knownSite(t)
		folder := filepath.Join(dir, StateFolder, "keys")
		if err := os.RemoveAll(filepath.Join(folder, gone)); err != nil {
			t.Fatal(err)
		}
		if gone == keys.BootFile { // as an earlier ironrail left it
			forgetIdentity(t, dir)
		}
		before, err := keys.ListMissing(folder)
		if err != nil {
			t.Fatal(err)
		}
		want := gone + " is missing in " + folder
		if gone == "" {
			want = "boot.key, manifest.pem, ssh_ed25519 and tls.key are missing in " + folder
		}
		refusedWith(t, "plan", planKnown(inv, dir), want)
		_, err = Open(inv, Options{})
		refusedWith(t, "apply", err, want)
		if after, err := keys.ListMissing(folder); err != nil || len(after) != len(before) {
			t.Errorf("%v were missing, and now %v: %v", before, after, err)
		}
	}
}

func forgetIdentity(t *testing.T, dir string) {
	t.Helper()
	store, err := state.Open(StatePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Append(t.Context(), fence, state.Batch{Puts: []state.Put{{Key: keys.IdentityKey, Want: state.Any}}}); err != nil {
		t.Fatal(err)
	}
}

// TestOtherKeys: keys that the nodes of the state do not trust are refused; Renew takes
// them when it is asked to.
func TestOtherKeys(t *testing.T) {
	t.Parallel()
	inv, dir := knownSite(t)
	folder := filepath.Join(dir, StateFolder, "keys")
	other := t.TempDir()
	if _, err := keys.Load(filepath.Join(other, "keys")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(other, "keys", keys.TLSFile), filepath.Join(folder, keys.TLSFile)); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, "plan", planKnown(inv, dir), "tls.key is another one (SHA256:")
	store, err := state.Open(StatePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(inv, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Begin(t.Context(), RunOptions{Plan: planFor(t, openText(t, strings.Replace(pinned, "DIGEST", one, 1)), state.Empty{}, PlanOptions{Targets: []string{"n2"}}), Store: store, Fence: fence, EraseApproved: 2})
	refusedWith(t, "apply", err, "tls.key is another one")
	if _, err := keys.Renew(t.Context(), store, fence, folder, "t"); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := planKnown(inv, dir); err != nil {
		t.Errorf("with keys that were taken: %v", err)
	}
}

// TestStateOfAnotherSite: a state folder that was copied is not taken.
func TestStateOfAnotherSite(t *testing.T) {
	t.Parallel()
	_, dir := knownSite(t)
	other := openText(t, strings.Replace(strings.Replace(pinned, "DIGEST", one, 1), `site "t"`, `site "prod"`, 1))
	r, err := state.OpenReadOnly(StatePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const want = "the state is that of site t, and the files are those of site prod"
	_, _, err = other.Plan(t.Context(), r, PlanOptions{Now: time.Now()})
	refusedWith(t, "plan", err, want)
	_, err = other.Report(t.Context(), r, "v", time.Now())
	refusedWith(t, "report", err, want)
}

// TestModesOfKeys: what others can read or replace is no key.
func TestModesOfKeys(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]os.FileMode{keys.BootFile: 0o644, keys.ManifestFile: 0o640, keys.TLSFile: 0o604, keys.SSHFile: 0o644, "": 0o777, "..": 0o775} {
		dir := filepath.Join(t.TempDir(), StateFolder, "keys")
		k, err := keys.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err = keys.Load(dir)
		refusedWith(t, name, err, path+" has mode ")
		if !strings.Contains(errkind.Action(err), "chmod ") || !strings.Contains(errkind.Action(err), path) {
			t.Errorf("%s: the action is %q", name, errkind.Action(err))
		}
		if os.Chmod(path, mode&0o700) != nil {
			t.Fatal("chmod")
		}
		if name == "" || name == ".." {
			continue
		}
		if again, err := keys.Load(dir); err != nil || !maps.Equal(again.Fingerprints(), k.Fingerprints()) {
			t.Errorf("%s: fixed: %v", name, err)
		}
	}
}

// TestModulesKey: the key that signs kernel modules is made for a site that needs it, recorded
// with the others, and not made anew.
func TestModulesKey(t *testing.T) {
	t.Parallel()
	inv, dir := knownSite(t)
	folder, now := filepath.Join(dir, StateFolder, "keys"), time.Now()
	s, err := Open(inv, Options{})
	if err != nil || s.Keys.Modules != nil {
		t.Fatalf("a site that needs none has %v: %v", s.Keys.Modules, err)
	}
	if err := s.Keys.AddModules(filepath.Join(dir, StateFolder), "t", now); err != nil {
		t.Fatal(err)
	}
	made := s.Keys.Modules
	store, err := state.Open(StatePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Keys.BindIdentity(t.Context(), store, fence, "t"); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := keys.Load(folder)
	if err != nil || again.Modules == nil || again.Modules.Fingerprint() != made.Fingerprint() || made.Name() != "ironrail modules of t" {
		t.Fatalf("loaded %v: %v", again.Modules, err)
	}
	file := filepath.Join(folder, keys.ModulesFile)
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = keys.Load(folder)
	refusedWith(t, "mode", err, file+" has mode 0644")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	const want = "modules.pem is missing in "
	refusedWith(t, "plan", planKnown(inv, dir), want)
	lost, err := keys.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	refusedWith(t, "made anew", lost.AddModules(filepath.Join(dir, StateFolder), "t", now), want)
	store, err = state.Open(StatePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if fence, err = store.Claim(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, "apply", lost.BindIdentity(t.Context(), store, fence, "t"), want)
	renewed, err := keys.Renew(t.Context(), store, fence, folder, "t")
	if err != nil || renewed.Modules == nil || renewed.Modules.Fingerprint() == made.Fingerprint() {
		t.Fatalf("renewed %v: %v", renewed.Modules, err)
	}
	if err := renewed.CheckIdentity(t.Context(), store, "t"); err != nil {
		t.Errorf("renewed: %v", err)
	}
}
