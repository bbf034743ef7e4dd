// SPDX-License-Identifier: Apache-2.0

// Package gpgtest signs files by GnuPG, as vendors do, for tests.
package gpgtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// Home is a folder of keys of its own. It belongs to one goroutine.
type Home struct {
	t   *testing.T
	dir string
}

// Dir is its path, for GNUPGHOME.
func (h Home) Dir() string { return h.dir }

// New makes an empty one, which ends with the test.
func New(t *testing.T) Home {
	t.Helper()
	peertest.Need(t, "gpg", "gpgconf")
	dir, err := os.MkdirTemp("", "gpg") // the path of its socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	h := Home{t, dir}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", dir, "--kill", "all").Run() // its agent
		_ = os.RemoveAll(dir)
	})
	return h
}

// Run runs gpg with what it reads, and returns what it writes.
func (h Home) Run(stdin string, args ...string) []byte {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "gpg", append([]string{"--homedir", h.dir, "--batch", "--yes", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...)
	var out, failed bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &failed
	if err := cmd.Run(); err != nil {
		h.t.Fatalf("gpg %q: %v\n%s", args, err, failed.String())
	}
	return out.Bytes()
}

// NewKey makes a key that signs, of an algorithm such as ed25519 or rsa2048, which ends
// after a time such as 1d, or never, 0. It returns its fingerprint. options are further
// ones of gpg.
func (h Home) NewKey(name, algorithm, ends string, options ...string) string {
	h.t.Helper()
	h.Run("", append(options, "--quick-gen-key", name, algorithm, "sign", ends)...)
	for line := range strings.Lines(string(h.Run("", "--with-colons", "--list-keys", "="+name))) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			return fields[9]
		}
	}
	h.t.Fatalf("no key of %s", name)
	return ""
}

// Public is a key in ASCII armor.
func (h Home) Public(fingerprint string) string {
	h.t.Helper()
	return string(h.Run("", "--armor", "--export", fingerprint))
}

// Revoke revokes a key by the certificate that was made with it.
func (h Home) Revoke(fingerprint string) {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "openpgp-revocs.d", fingerprint+".rev"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.Run(strings.ReplaceAll(string(text), ":-----BEGIN", "-----BEGIN"), "--import")
}

// Sign signs a text with a key: how is --clear-sign or --detach-sign. options are further
// ones of gpg.
func (h Home) Sign(key, how, text string, options ...string) []byte {
	h.t.Helper()
	return h.Run(text, append(options, "--local-user", key+"!", how)...)
}
