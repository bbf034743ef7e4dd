package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Seal sets the checksum of a plan that is about to be saved. Whoever changes the
// plan afterwards breaks it. The error is a defect: a plan is always JSON.
func (p *Plan) Seal() (err error) {
	p.Sum, err = p.sum()
	return err
}

// Whole reports whether a plan that was read is the one that was saved: nothing of
// it was edited, and no later ironrail put in what this one does not know. The
// checksum protects from mistakes, not from somebody who makes a new one.
func (p *Plan) Whole() bool {
	sum, err := p.sum()
	return err == nil && p.Sum == sum
}

// sum is the SHA-256 of the plan's JSON without its checksum.
func (p *Plan) sum() (string, error) {
	bare := *p
	bare.Sum = ""
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(&bare); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
