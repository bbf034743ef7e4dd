// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/ironrail/ironrail/internal/errkind"
)

// knownHosts is what OpenSSH's files say of host keys.
type knownHosts struct {
	files []string // those that are there
	add   string   // where a key that was confirmed is written to
	check ssh.HostKeyCallback
	probe ssh.PublicKey // a key that no host has
}

// readKnownHosts reads the files; the first is the one that keys are added to. One
// that is not there is empty.
func readKnownHosts(files []string) (*knownHosts, error) {
	k := &knownHosts{}
	if len(files) > 0 {
		k.add = files[0]
	}
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			k.files = append(k.files, f)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, errkind.New(errkind.Invalid, "known host keys: %w", err)
		}
	}
	var err error
	if k.check, err = knownhosts.New(k.files...); err != nil {
		return nil, errkind.New(errkind.Invalid, "known host keys: %w", err).Do("Correct that line, or name another file with --known-hosts.")
	}
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	k.probe, err = ssh.NewPublicKey(public)
	return k, err
}

// keyTypes are the types of host keys, the preferred ones first.
var keyTypes = []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA}

// known returns the key that a host must show; nil where none is known. Keys of
// authorities do not count: hosts are known by keys of their own here.
func (k *knownHosts) known(endpoint string) (ssh.PublicKey, error) {
	var want *knownhosts.KeyError
	if err := k.check(endpoint, nowhere{}, k.probe); !errors.As(err, &want) {
		return nil, errkind.New(errkind.Invalid, "known host keys: %w", err)
	}
	var best ssh.PublicKey
	for _, w := range want.Want {
		if k.isAuthority(w) || !slices.Contains(keyTypes, w.Key.Type()) {
			continue
		}
		if best == nil || slices.Index(keyTypes, w.Key.Type()) < slices.Index(keyTypes, best.Type()) {
			best = w.Key
		}
	}
	if best == nil {
		return nil, nil
	}
	var revoked *knownhosts.RevokedError
	if err := k.check(endpoint, nowhere{}, best); errors.As(err, &revoked) {
		return nil, errkind.New(errkind.Mismatch, "its host key %s is revoked (%s, line %d)", ssh.FingerprintSHA256(best), revoked.Revoked.Filename, revoked.Revoked.Line).
			Do("Find out why it was revoked; then give the host a new key.")
	}
	return best, nil
}

// nowhere is the address of a host that is looked up by its name.
type nowhere struct{}

func (nowhere) Network() string { return "tcp" }
func (nowhere) String() string  { return "0.0.0.0:22" }

var _ net.Addr = nowhere{}

// isAuthority reports whether a line of the files is about an authority's key.
func (k *knownHosts) isAuthority(key knownhosts.KnownKey) bool {
	f, err := os.Open(key.Filename)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if n == key.Line {
			return strings.HasPrefix(strings.TrimSpace(lines.Text()), "@cert-authority")
		}
	}
	return false
}

// UnknownKey is the key that a host showed and that is in no file.
type UnknownKey struct {
	Host Host
	Key  ssh.PublicKey
}

// Fingerprint is the key as ssh-keygen -l shows it.
func (u UnknownKey) Fingerprint() string {
	return strings.TrimPrefix(u.Key.Type(), "ssh-") + " " + ssh.FingerprintSHA256(u.Key)
}

// remember adds keys that a person has confirmed to the file.
func (k *knownHosts) remember(keys []UnknownKey) error {
	if k.add == "" || len(keys) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(k.add), 0o700); err != nil {
		return err
	}
	old, err := os.ReadFile(k.add)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var b bytes.Buffer
	if len(old) > 0 && old[len(old)-1] != '\n' {
		b.WriteByte('\n')
	}
	for _, u := range keys {
		fmt.Fprintln(&b, knownhosts.Line([]string{u.Host.Endpoint()}, u.Key))
	}
	f, err := os.OpenFile(k.add, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Close())
}

// unknownKeyError ends a log-in at a host whose key is in no file.
type unknownKeyError struct{ key ssh.PublicKey }

func (e *unknownKeyError) Error() string {
	return "its host key " + ssh.FingerprintSHA256(e.key) + " is not known"
}

// refuseUnknown is what a host without a confirmed key is told.
func refuseUnknown(u UnknownKey) error {
	return errkind.New(errkind.Refused, "its host key is in no file of known hosts: it showed %s", u.Fingerprint()).
		Do("Compare the fingerprint with the node's own (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub on its console), then run it on a terminal and confirm, or with --accept-new-host-keys.")
}
