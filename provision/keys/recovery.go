// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// RecoveryFolder is where the recovery keys of encrypted volumes lie in the folder of keys: a
// file of mode 0600 for each, with the UUID of its LUKS2 volume as name.
const RecoveryFolder = "recovery"

const (
	recoveryType   = "IRONRAIL RECOVERY KEY"
	recoverySuffix = ".key"
)

// recoveryName is the name of a recovery key's file in the folder of keys.
var recoveryName = lazyregexp.New(`^recovery/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.key$`)

// IsRecoveryFile reports whether a name is that of a recovery key's file, as ListRecoveryFiles
// returns it.
func IsRecoveryFile(name string) bool { return recoveryName.MatchString(name) }

// RecoveryKey is the passphrase that opens a volume without its TPM.
type RecoveryKey struct {
	Node, Volume string // whose it is: the node, and the label of the volume
	UUID         string // of the LUKS2 volume, lower case
	Text         string // eight groups of eight letters
}

// modhex are letters that lie at the same place on most keyboards, for 0 to 15: a key is typed
// at a console, perhaps. systemd's recovery keys have the same form (systemd-cryptenroll(1)).
const modhex = "cbdefghijklnrtuv"

// newRecoveryText makes a passphrase of 256 random bits.
func newRecoveryText() string {
	random := make([]byte, keySize)
	rand.Read(random) // never fails: crypto/rand aborts the program instead
	var b strings.Builder
	for i, c := range random {
		if i > 0 && i%4 == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(modhex[c>>4])
		b.WriteByte(modhex[c&15])
	}
	return b.String()
}

// Recovery are the recovery keys of a site, in its folder of keys. It is safe for concurrent
// use: no two volumes have the same file.
type Recovery struct{ dir string }

// RecoveryIn are the recovery keys in a folder of keys.
func RecoveryIn(dir string) Recovery { return Recovery{dir} }

// Recovery are the recovery keys beside these keys.
func (k Keys) Recovery() Recovery { return Recovery{k.dir} }

// Find reads the key of a volume; NotFound where there is none.
func (r Recovery) Find(uuid string) (k RecoveryKey, err error) {
	name := path.Join(RecoveryFolder, uuid+recoverySuffix)
	if !IsRecoveryFile(name) {
		return k, errkind.New(errkind.Invalid, "%q is no UUID of a volume", uuid)
	}
	file := filepath.Join(r.dir, name)
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, errkind.New(errkind.NotFound, "there is no recovery key %s", file).Do("Put it back: `ironrail state restore` does it from a backup with keys.")
	}
	if err != nil {
		return k, fmt.Errorf("recovery key: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != recoveryType || len(block.Bytes) == 0 {
		return k, errkind.New(errkind.Corrupt, "recovery key %s is damaged", file).Do("Put it back: `ironrail state restore` does it from a backup with keys.")
	}
	return RecoveryKey{block.Headers["Node"], block.Headers["Volume"], uuid, string(block.Bytes)}, nil
}

// Make makes the key of a volume durably, or reads the one that is there.
func (r Recovery) Make(node, volume, uuid string) (RecoveryKey, error) {
	k, err := r.Find(uuid)
	if errkind.Of(err) != errkind.NotFound {
		return k, err
	}
	if err := os.MkdirAll(filepath.Join(r.dir, RecoveryFolder), 0o700); err != nil {
		return k, fmt.Errorf("recovery key: %w", err)
	}
	if err := durable.SyncFolder(r.dir); err != nil { // the folder that was just made
		return k, fmt.Errorf("recovery key: %w", err)
	}
	k = RecoveryKey{node, volume, uuid, newRecoveryText()}
	b := pem.EncodeToMemory(&pem.Block{Type: recoveryType, Headers: map[string]string{"Node": node, "Volume": volume}, Bytes: []byte(k.Text)})
	return k, writeNew(filepath.Join(r.dir, RecoveryFolder, uuid+recoverySuffix), b)
}

// List reads all keys, in the order of their UUIDs. Where some cannot be read it returns the others
// with the errors: they are asked for when a volume has to be opened.
func (r Recovery) List() (list []RecoveryKey, err error) {
	names, err := ListRecoveryFiles(r.dir)
	for _, name := range names {
		k, bad := r.Find(strings.TrimSuffix(path.Base(name), recoverySuffix))
		if bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		list = append(list, k)
	}
	return list, err
}

// ListRecoveryFiles are the names of the recovery keys' files in a folder of keys, sorted, with
// slashes; none where there is no such folder.
func ListRecoveryFiles(dir string) (names []string, err error) {
	all, err := os.ReadDir(filepath.Join(dir, RecoveryFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range all {
		if name := path.Join(RecoveryFolder, e.Name()); IsRecoveryFile(name) {
			names = append(names, name)
		}
	}
	if err != nil {
		err = fmt.Errorf("recovery keys: %w", err)
	}
	return names, err
}
