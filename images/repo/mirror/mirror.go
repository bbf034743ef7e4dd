// SPDX-License-Identifier: Apache-2.0

// Package mirror copies of a repository what driver stacks need of it: its index as it is,
// with the signature of its vendor, and of its packages those that are asked for with what
// they need of the same repository. A folder with such copies is served in a network that
// the vendor's server cannot be reached from.
package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/ironrail/ironrail/images/internal/download"
	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Want is what is copied of a repository.
type Want struct {
	Source   repo.Source // with the key that it, or each of its RPM packages, is signed with
	From     string      // URL that it is copied from; "": that of Source
	Dnf      bool        // it is one of RPM packages
	Release  string      // of the system: $releasever of dnf
	Arch     string      // as dpkg has it
	Packages []string
	Pins     []repo.Pin
}

// Copy is a repository that was copied.
type Copy struct {
	Folder   string   // of its files, where the path of the source's URL leads below the mirror
	Packages int      // that are in it
	Bytes    int64    // of these
	Fetched  int      // packages that were not there yet
	Absent   []string // packages that are asked for and that the repository has not: others bring them
	Unsigned bool     // its index has no signature: those of its packages are looked at when a controller takes them
}

// Make copies a repository into a folder, below the host and the path of its URL. What is there
// already, by its digest, is not fetched again; what broke off goes on where it was. It
// says in short lines how far it is.
func Make(ctx context.Context, w Want, to string, say func(string)) (Copy, error) {
	m := &maker{Want: w, say: say, sum: sha256.New()}
	err := signature.CheckKey(string(w.Source.Key))
	if err == nil {
		m.keys, err = signature.ReadKeys(w.Source.Key)
	}
	if err != nil {
		return Copy{}, errkind.New(errkind.Refused, "%s: its key: %w", w.Source.URL, err).Do("Give the key of the repository in the driver block: what is brought into a closed network is compared with its signature first.")
	}
	at := w.expand(w.Source.URL)
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return Copy{}, errkind.New(errkind.Refused, "%q is no URL of a web server", w.Source.URL).Do("Name the repository by http or https in the driver block.")
	}
	m.from = cmp.Or(w.expand(w.From), at)
	m.out = filepath.Join(to, u.Host, filepath.FromSlash(path.Clean("/"+u.Path)))
	if err := os.MkdirAll(m.out, 0o755); err != nil {
		return Copy{}, err
	}
	copied := Copy{Folder: m.out}
	offered, err := m.index(ctx, &copied)
	if err != nil {
		return copied, fmt.Errorf("%s: %w", m.from, err)
	}
	chosen, absent, err := offered.choose(w)
	if err != nil {
		return copied, fmt.Errorf("%s: %w", m.from, err)
	}
	copied.Absent = absent
	for i, p := range chosen {
		fresh, err := m.bring(ctx, p.file, p.size, p.sum, fmt.Sprintf("%d of %d: %s %s", i+1, len(chosen), p.name, p.version))
		if err != nil {
			return copied, err
		}
		copied.Packages, copied.Bytes = copied.Packages+1, copied.Bytes+p.size
		if fresh {
			copied.Fetched++
		}
	}
	return copied, m.publish()
}

// expand replaces the variables that dnf has in URLs.
func (w Want) expand(at string) string {
	if !w.Dnf {
		return at
	}
	return strings.NewReplacer("$releasever", w.Release, "$basearch", "x86_64").Replace(at)
}

// maker is one copy in progress.
type maker struct {
	Want
	keys  openpgp.EntityList
	from  string // URL
	out   string // folder
	say   func(string)
	sum   hash.Hash
	heads map[string][]byte // files that have no digest, by name
}

// maxHead bounds such a file in bytes.
const maxHead = 16 << 20

// url is that of a file of the repository.
func (m *maker) url(name string) string { return strings.TrimSuffix(m.from, "/") + "/" + name }

// small returns a file without a digest, which is written when all else is there.
func (m *maker) small(ctx context.Context, name string) ([]byte, error) {
	b, err := download.Small(ctx, m.url(name), maxHead)
	if err != nil {
		return nil, err
	}
	if m.heads == nil {
		m.heads = map[string][]byte{}
	}
	m.heads[name] = b
	return b, nil
}

// publish writes the files that have no digest: those that say what else is there.
func (m *maker) publish() error {
	for name, b := range m.heads {
		at := filepath.Join(m.out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := durable.Write(at, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// partial ends the name of a file that is not whole yet.
const partial = ".part"

// bring fetches a file of the repository unless it is there, and compares it with its digest.
// It reports whether it was fetched.
func (m *maker) bring(ctx context.Context, name string, size int64, sum, what string) (fresh bool, err error) {
	if !filepath.IsLocal(name) || path.Clean(name) != name {
		return false, errkind.New(errkind.Invalid, "%s: its index names the file %q", m.from, name)
	}
	at := filepath.Join(m.out, filepath.FromSlash(name))
	if n, have, err := folder.Sum(at); err == nil && n == size && have == sum {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return false, err
	}
	m.say(fmt.Sprintf("%s, %.1f MiB", what, float64(size)/(1<<20)))
	m.sum.Reset()
	whole := func() bool { return hex.EncodeToString(m.sum.Sum(nil)) == sum }
	if err := (download.File{URL: m.url(name), To: at + partial, Sum: m.sum, Whole: whole, Most: max(size, 1), Say: m.say}).Fetch(ctx); err != nil {
		return false, err
	}
	if !whole() {
		_ = os.Remove(at + partial) // else the next copy finds it wrong as well
		return false, errkind.New(errkind.Mismatch, "%s is not the file that the index describes (SHA-256 %s, not %s)", m.url(name), hex.EncodeToString(m.sum.Sum(nil)), sum).
			Do("Copy it again; if it stays so, the server or a cache before it gives another file: name another one.")
	}
	if err := os.Chmod(at+partial, 0o644); err != nil {
		return false, err
	}
	return true, os.Rename(at+partial, at)
}

// index brings the files of the index, and returns what is on offer.
func (m *maker) index(ctx context.Context, c *Copy) (offers, error) {
	m.say("reading the index of " + m.from)
	if m.Dnf {
		return m.dnfIndex(ctx, c)
	}
	return m.aptIndex(ctx)
}
