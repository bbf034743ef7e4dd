// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"strconv"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
)

// Secrets answers references with made-up secrets, the same for the controller
// and for the hardware: a rehearsal resolves none of the site's.
type Secrets struct {
	seed uint64
	keys map[secret.Ref]bool // of logins: SSH keys, not passwords
}

// Secrets are those of this rack.
func (w *World) Secrets() Secrets { return SecretsOf(w.inv, w.opt.Seed) }

// SecretsOf are those of a rack of this site and seed.
func SecretsOf(inv *inventory.Inventory, seed uint64) Secrets {
	s := Secrets{seed, map[secret.Ref]bool{}}
	for _, g := range inv.Logins {
		if g.Key != "" {
			s.keys[g.Key] = true
		}
	}
	return s
}

// Resolve implements provision.Secrets.
func (s Secrets) Resolve(ref secret.Ref) (secret.Value, error) {
	if ref == "" {
		return secret.Value{}, nil
	}
	sum := sha256.Sum256([]byte("rehearsal " + strconv.FormatUint(s.seed, 10) + " " + string(ref)))
	if s.keys[ref] {
		block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(sum[:]), "rehearsal")
		if err != nil {
			return secret.Value{}, err
		}
		return secret.NewValue(string(pem.EncodeToMemory(block))), nil
	}
	return secret.NewValue("Aa1-" + hex.EncodeToString(sum[:6])), nil // 16 bytes: what IPMI's oldest BMCs take
}

// password is what the hardware has stored for a reference.
func (w *World) password(ref secret.Ref) string {
	v, _ := w.Secrets().Resolve(ref) // never fails
	return v.Reveal()
}
