// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Identity says whose a state is: the site, and the controller's keys that its nodes
// trust. It is recorded by the first run, and never changed without being asked for.
type Identity struct {
	Site string            `json:"site"`
	Keys map[string]string `json:"keys,omitempty"` // fingerprints, by the name of the file
	// Virtual says that the nodes were simulated: the state is that of a rehearsal or of a
	// virtual rack.
	Virtual bool `json:"virtual,omitempty"`
}

// IdentityKey is the key of the state's Identity.
var IdentityKey = state.Key{Kind: "identity", Name: "site"}

// The key files of a state folder.
const (
	BootFile     = "boot.key"
	ManifestFile = "manifest.pem"
	SSHFile      = "ssh_ed25519"
	TLSFile      = "tls.key"
	ModulesFile  = "modules.pem" // of sites whose nodes need signed modules
)

// ListFiles are the names of the key files that every controller has.
func ListFiles() []string { return []string{BootFile, ManifestFile, SSHFile, TLSFile} }

// ListAllFiles are the names of all key files, those that not every site has among them.
func ListAllFiles() []string { return append(ListFiles(), ModulesFile) }

// Fingerprints names each key without telling it, by the name of its file; nil when
// there are none.
func (k Keys) Fingerprints() map[string]string {
	if len(k.Boot) == 0 {
		return nil
	}
	sum := func(b []byte) string {
		s := sha256.Sum256(b)
		return "SHA256:" + base64.RawStdEncoding.EncodeToString(s[:])
	}
	all := map[string]string{BootFile: sum(k.Boot), ManifestFile: sum(k.Manifest.Seed()),
		SSHFile: ssh.FingerprintSHA256(k.SSH.PublicKey()), TLSFile: "SHA256:" + strings.TrimRight(k.Pin, "=")}
	if k.Modules != nil {
		all[ModulesFile] = sum(k.Modules.DER())
	}
	return all
}

// AddModules makes the key that signs kernel modules, in a state folder whose keys were
// opened, unless it is there. It is not made anew where the state has recorded one: nodes
// trust that.
func (k *Keys) AddModules(state, site string, now time.Time) error {
	if k.Modules != nil {
		return nil
	}
	id, err := readIdentity(filepath.Join(state, "state.db"))
	if err != nil {
		return err
	}
	if id.Keys[ModulesFile] != "" {
		return refuseMissing(k.dir, []string{ModulesFile})
	}
	return k.createModules(site, now)
}

// createModules makes the key.
func (k *Keys) createModules(site string, now time.Time) (err error) {
	path := filepath.Join(k.dir, ModulesFile)
	if err := modsign.Create(path, site, now); err != nil {
		return err
	}
	k.Modules, err = modsign.Load(path)
	return err
}

// readIdentity is the identity that a state records; zero where there is no state.
func readIdentity(path string) (Identity, error) {
	r, err := state.OpenReadOnly(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, nil
	}
	if err != nil {
		return Identity{}, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, _, err := state.Get[Identity](ctx, r, IdentityKey)
	return id, err
}

// ListMissing lists the key files that a folder does not have.
func ListMissing(dir string) (missing []string, err error) {
	for _, name := range ListFiles() {
		_, err := os.Lstat(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return nil, fmt.Errorf("keys: %w", err)
		}
	}
	return missing, nil
}

// CheckModes refuses keys that others than their owner can read or replace.
func CheckModes(dir string) error {
	recovery, err := ListRecoveryFiles(dir)
	if err != nil {
		return err
	}
	folders := []string{filepath.Dir(dir), dir}
	if len(recovery) > 0 {
		folders = append(folders, filepath.Join(dir, RecoveryFolder))
	}
	for _, d := range folders {
		info, err := os.Stat(d)
		if err != nil {
			return fmt.Errorf("keys: %w", err)
		}
		if mode := info.Mode().Perm(); mode&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return errkind.New(errkind.Refused, "folder %s has mode %04o: others can replace the controller's keys in it", d, mode).Do("Run: chmod go-w " + d)
		}
	}
	for _, name := range append(ListAllFiles(), recovery...) {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("keys: %w", err)
		case !info.Mode().IsRegular():
			return errkind.New(errkind.Refused, "key file %s is no regular file", path).Do("Put the key itself there.")
		case info.Mode().Perm()&0o077 != 0:
			return errkind.New(errkind.Refused, "key file %s has mode %04o: others can read it", path, info.Mode().Perm()).Do("Run: chmod 600 " + path)
		}
	}
	return nil
}

// Open reads the keys of a state folder. Missing ones are made for a site that was
// never worked with, and not for one that is only looked at. Beside a state that knows
// nodes nothing is made: the nodes trust the keys that are gone. The refusal is
// the error, or for a site that is only looked at in Keys, for what needs them.
func Open(state string, look bool) (Keys, error) {
	dir := filepath.Join(state, Folder)
	missing, err := ListMissing(dir)
	if err != nil {
		return Keys{}, err
	}
	var gone error
	if len(missing) > 0 {
		used, err := isStateInUse(filepath.Join(state, "state.db"))
		if err != nil {
			return Keys{}, err
		}
		if used {
			gone = refuseMissing(dir, missing)
		}
		if look {
			return Keys{gone: gone}, nil
		}
		if used {
			return Keys{}, gone
		}
	}
	return Load(dir)
}

// refuseMissing says which keys are gone, and what to do.
func refuseMissing(dir string, missing []string) error {
	return errkind.New(errkind.Refused, "of the controller's keys %s missing in %s, and the state knows nodes that trust them: none is made anew", formatAre(missing), dir).
		Do("Put the files back, mode 600: `ironrail state restore` does it from a backup with keys. If they are lost, `ironrail state keys --new` makes new ones, and says what that breaks.")
}

// formatAre reads "a is" or "a and b are".
func formatAre(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
}

// isStateInUse reports whether the state at path knows keys, or nodes that something was
// done to; false where there is none.
func isStateInUse(path string) (bool, error) {
	r, err := state.OpenReadOnly(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, _, err := state.Get[Identity](ctx, r, IdentityKey)
	if err != nil || len(id.Keys) > 0 {
		return err == nil, err
	}
	nodes, err := state.ReadNodes(ctx, r)
	for _, n := range nodes {
		if n.Accepted || n.Adopted || n.Run != "" {
			return true, nil
		}
	}
	return false, err
}

// CheckSite refuses a state that is another site's.
func CheckSite(ctx context.Context, r state.Reader, site string) error {
	id, _, err := state.Get[Identity](ctx, r, IdentityKey)
	if err != nil {
		return err
	}
	if id.Site != "" && id.Site != site {
		return errkind.New(errkind.Refused, "the state is that of site %s, and the files are those of site %s", id.Site, site).
			Do("Use the folder of the site. If the site was renamed, `ironrail state rm identity/site` lets the next apply record its new name.")
	}
	return nil
}

// MarkVirtual says of a state that its nodes were simulated.
func MarkVirtual(ctx context.Context, store state.Store, fence state.Fence) error {
	id, _, err := state.Get[Identity](ctx, store, IdentityKey)
	if err != nil {
		return err
	}
	id.Virtual = true
	put, err := state.PutOf(IdentityKey, id)
	if err != nil {
		return err
	}
	put.Want = state.Any
	_, err = store.Append(ctx, fence, state.Batch{Puts: []state.Put{put}})
	return err
}

// IsVirtual reports whether a state is that of a rehearsal or of a virtual rack.
func IsVirtual(ctx context.Context, r state.Reader) (bool, error) {
	id, _, err := state.Get[Identity](ctx, r, IdentityKey)
	return id.Virtual, err
}

// CheckIdentity refuses a state that is another site's, or whose nodes trust other keys
// than k.
func (k Keys) CheckIdentity(ctx context.Context, r state.Reader, site string) error {
	if err := CheckSite(ctx, r, site); err != nil {
		return err
	}
	id, _, err := state.Get[Identity](ctx, r, IdentityKey)
	if err != nil {
		return err
	}
	if err := k.checkVirtual(id); err != nil {
		return err
	}
	if k.gone != nil {
		return k.gone
	}
	have := k.Fingerprints()
	if have != nil && have[ModulesFile] == "" && id.Keys[ModulesFile] != "" {
		return refuseMissing(k.dir, []string{ModulesFile})
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if want := id.Keys[name]; want != "" && want != have[name] {
			return errkind.New(errkind.Refused, "key file %s is another one (%s) than the nodes of the state trust (%s)", filepath.Join(k.dir, name), have[name], want).
				Do("Put the right one back: `ironrail state restore` does it from a backup with keys. If it is lost, `ironrail state keys --new` takes the present one, and says what that breaks.")
		}
	}
	return nil
}

// CheckVirtual refuses a state of simulated nodes where the network is the real one, and a
// state of real nodes where it is that of a virtual rack.
func (k Keys) CheckVirtual(ctx context.Context, r state.Reader) error {
	id, _, err := state.Get[Identity](ctx, r, IdentityKey)
	if err != nil {
		return err
	}
	return k.checkVirtual(id)
}

func (k Keys) checkVirtual(id Identity) error {
	switch {
	case id.Virtual && !k.Virtual:
		return errkind.New(errkind.Refused, "the state is that of a rehearsal: its nodes were simulated, and what it knows is true of no hardware").
			Do("Use the folder of the site itself. `status`, `why`, `events` and `report` read a rehearsal's; a state of `ironrail rack` is used with --rack.")
	case k.Virtual && !id.Virtual && id.Site != "":
		return errkind.New(errkind.Refused, "the state is that of real nodes: on a virtual rack nothing of it is true").
			Do("Use it without --rack, or take it out of the virtual rack's folder.")
	}
	return nil
}

// BindIdentity records whose the state is, where that is not recorded yet.
func (k Keys) BindIdentity(ctx context.Context, store state.Store, fence state.Fence, site string) error {
	if err := k.CheckIdentity(ctx, store, site); err != nil {
		return err
	}
	id, version, err := state.Get[Identity](ctx, store, IdentityKey)
	if err != nil {
		return err
	}
	now := Identity{Site: site, Keys: k.Fingerprints(), Virtual: k.Virtual}
	if id.Site == now.Site && maps.Equal(id.Keys, now.Keys) || len(now.Keys) == 0 {
		return nil
	}
	return putIdentity(ctx, store, fence, version, now)
}

func putIdentity(ctx context.Context, store state.Store, fence state.Fence, version uint64, id Identity) error {
	put, err := state.PutOf(IdentityKey, id)
	if err != nil {
		return err
	}
	put.Want = version
	_, err = store.Append(ctx, fence, state.Batch{Puts: []state.Put{put}, Records: []state.Record{state.Record{Kind: state.Note, Time: time.Now().UTC()}.With(
		fmt.Sprintf("the state is that of site %s, with the keys %s", id.Site, formatFingerprints(id.Keys)))}})
	return err
}

// formatFingerprints lists fingerprints by their names.
func formatFingerprints(keys map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		parts = append(parts, name+" "+keys[name])
	}
	return strings.Join(parts, ", ")
}

// Renew makes the keys in dir that are missing, and records those that are there now
// as the ones of the state. Whoever trusted others has to learn them.
func Renew(ctx context.Context, store state.Store, fence state.Fence, dir, site string) (Keys, error) {
	k, err := Load(dir)
	if err != nil {
		return k, err
	}
	id, version, err := state.Get[Identity](ctx, store, IdentityKey)
	if err != nil {
		return k, err
	}
	if id.Keys[ModulesFile] != "" && k.Modules == nil {
		if err := k.createModules(site, time.Now()); err != nil {
			return k, err
		}
	}
	return k, putIdentity(ctx, store, fence, version, Identity{Site: site, Keys: k.Fingerprints(), Virtual: id.Virtual})
}
