package virtual

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/ironrail/ironrail/provision/secret"
)

// Secrets answers references with made-up secrets, the same for the controller
// and for the hardware: a rehearsal resolves none of the site's.
type Secrets struct{ seed uint64 }

// Secrets are those of this rack.
func (w *World) Secrets() Secrets { return Secrets{w.opt.Seed} }

// Resolve implements provision.Secrets.
func (s Secrets) Resolve(ref secret.Ref) (secret.Value, error) {
	if ref == "" {
		return secret.Value{}, nil
	}
	sum := sha256.Sum256([]byte("rehearsal " + strconv.FormatUint(s.seed, 10) + " " + string(ref)))
	return secret.NewValue("Aa1-" + hex.EncodeToString(sum[:6])), nil // 16 bytes: what IPMI's oldest BMCs take
}

// password is what the hardware has stored for a reference.
func (w *World) password(ref secret.Ref) string {
	v, _ := w.Secrets().Resolve(ref) // never fails
	return v.Reveal()
}
