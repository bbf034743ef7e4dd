// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
)

// Key seals saved plans: HMAC-SHA256 with a secret of the state folder. The empty
// Key seals nothing, and no seal is valid under it.
type Key []byte

// Fingerprint names a key without telling it; "" for the empty Key.
func (k Key) Fingerprint() string {
	if len(k) == 0 {
		return ""
	}
	sum := sha256.Sum256(k)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// Seal is the last line of a saved plan.
type Seal struct {
	Key  string `json:"key,omitempty"`  // fingerprint of the key that sealed it
	HMAC string `json:"hmac,omitempty"` // hex, of every byte before the line with the seal
}

// Problem says what is wrong with a seal of content with this HMAC under the key;
// "" for a valid one.
func (s Seal) problem(k Key, sum []byte) string {
	switch got, err := hex.DecodeString(s.HMAC); {
	case s.Key == "" && s.HMAC == "":
		return "it has no seal"
	case len(k) == 0:
		return "it was sealed with the key " + s.Key + ", and this site has no keys"
	case s.Key != k.Fingerprint():
		return "it was sealed with the key " + s.Key + ", and the key of this site is " + k.Fingerprint()
	case err != nil || !hmac.Equal(got, sum):
		return "it was edited after it was saved"
	}
	return ""
}

// Digest names what a plan says: the SHA-256 of its JSON without Sum. It is recorded
// with the approval of a plan. It protects from nothing: that is what a Seal is for.
// The error is a defect: a plan is always JSON.
func (p *Plan) Digest() (string, error) {
	bare := *p
	bare.Sum, bare.Steps = "", nil
	h := sha256.New()
	enc := json.NewEncoder(h)
	if err := enc.Encode(&bare); err != nil {
		return "", err
	}
	for i := range p.Steps { // one by one: together they take hundreds of MB
		if err := enc.Encode(&p.Steps[i]); err != nil {
			return "", err
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
