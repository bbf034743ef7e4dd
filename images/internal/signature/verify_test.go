// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images/internal/gpgtest"
	"github.com/ironrail/ironrail/internal/errkind"
)

const text = "# of a release\nSHA256 (disk.qcow2) = 00\n- a line that begins with a dash\n"

// made is a signature as GnuPG makes it, and the keys that it is compared with.
type made struct {
	keys, signed string
	detached     []byte // nil: signed has it in itself
}

// TestPeerVerify: signatures of GnuPG are verified by the keys that made them, in every
// form that vendors publish, and no others.
func TestPeerVerify(t *testing.T) {
	t.Parallel()
	h := gpgtest.New(t)
	key, other, rsa := h.NewKey("vendor", "ed25519", "0"), h.NewKey("other", "ed25519", "0"), h.NewKey("rsa", "rsa2048", "0")
	const then = "--faked-system-time=20200101T000000!"
	ended := h.NewKey("ended", "ed25519", "1d", then)
	old := h.NewKey("old", "ed25519", "0", then)
	weak := h.NewKey("weak", "rsa1024", "0")
	revoked := h.NewKey("revoked", "ed25519", "0")
	public := map[string]string{}
	for _, k := range []string{key, other, rsa, ended, old, weak} {
		public[k] = h.Public(k)
	}
	byRevoked := h.Sign(revoked, "--detach-sign", text)
	h.Revoke(revoked)
	public[revoked] = h.Public(revoked)
	h.Run("", "--quick-add-key", rsa, "ed25519", "sign", "0")
	sub := subkey(t, h, rsa)

	clear := func(k string, options ...string) made {
		return made{public[k], string(h.Sign(k, "--clear-sign", text, options...)), nil}
	}
	detached := func(k string, options ...string) made {
		return made{public[k], text, h.Sign(k, "--detach-sign", text, options...)}
	}
	with := func(m made, change func(*made)) made { change(&m); return m }
	for name, c := range map[string]struct {
		made
		signer string // empty: refused
		kind   errkind.Kind
		says   string
	}{
		"clear-signed":          {clear(key), key, 0, ""},
		"detached":              {detached(key), key, 0, ""},
		"detached in armor":     {detached(key, "--armor"), key, 0, ""},
		"detached, text":        {detached(key, "--textmode"), key, 0, ""},
		"rsa, SHA-256":          {detached(rsa, "--digest-algo", "SHA256"), rsa, 0, ""},
		"by a subkey":           {made{h.Public(rsa), text, h.Sign(sub, "--detach-sign", text)}, rsa, 0, ""},
		"two keys":              {with(detached(key), func(m *made) { m.keys = public[other] + m.keys }), key, 0, ""},
		"two signatures":        {with(detached(key), func(m *made) { m.detached = append(h.Sign(other, "--detach-sign", text), m.detached...) }), key, 0, ""},
		"another key":           {with(detached(key), func(m *made) { m.keys = public[other] }), "", errkind.Mismatch, "it is signed by key " + key + ", and signing_key has " + other},
		"another key, clear":    {with(clear(key), func(m *made) { m.keys = public[other] }), "", errkind.Mismatch, "and signing_key has " + other},
		"subkey that is absent": {made{public[rsa], text, h.Sign(sub, "--detach-sign", text)}, "", errkind.Mismatch, "and signing_key has " + rsa},
		"another text":          {with(detached(key), func(m *made) { m.signed += "x" }), "", errkind.Corrupt, "is not of what is here"},
		"changed clear text":    {with(clear(key), func(m *made) { m.signed = strings.Replace(m.signed, "= 00", "= 01", 1) }), "", errkind.Corrupt, "is not of what is here"},
		"expired key":           {detached(ended, then), "", errkind.Refused, "key " + ended + " has expired"},
		"expired signature":     {detached(old, then, "--default-sig-expire", "1d"), "", errkind.Refused, "the signature of key " + old + " has expired"},
		"of the future":         {detached(key, "--faked-system-time=20991231T000000"), "", errkind.Refused, "the clock of this controller"},
		"revoked key":           {made{public[revoked], text, byRevoked}, "", errkind.Refused, "key " + revoked + " is revoked"},
		"SHA-1":                 {detached(rsa, "--digest-algo", "SHA1"), "", errkind.Refused, "over a hash of SHA-1"},
		"SHA-1, clear":          {clear(rsa, "--digest-algo", "SHA1"), "", errkind.Refused, "over a hash of SHA-1"},
		"rsa of 1024 bits":      {detached(weak), "", errkind.Refused, "is of RSA with 1024 bits"},
		"no signature":          {with(detached(key), func(m *made) { m.detached = []byte("<html>login</html>") }), "", errkind.Invalid, "no OpenPGP signature"},
		"empty":                 {with(detached(key), func(m *made) { m.detached = []byte{} }), "", errkind.Invalid, "there is no OpenPGP signature in it"},
		"cut off":               {with(detached(key), func(m *made) { m.detached = m.detached[:40] }), "", errkind.Invalid, "damaged"},
		"cut off, in armor":     {with(detached(key, "--armor"), func(m *made) { m.detached = m.detached[:90] }), "", errkind.Invalid, "cut off or damaged"},
		"a key in its place":    {with(detached(key), func(m *made) { m.detached = []byte(m.keys) }), "", errkind.Invalid, "no detached signature"},
		"a message":             {with(detached(key), func(m *made) { m.detached = h.Sign(key, "--sign", text) }), "", errkind.Invalid, "no detached signature"},
		"clear, no line":        {made{public[key], clearHead + "\nHash: SHA512\n\n-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----\n", nil}, "", errkind.Invalid, "cut off or damaged"},
		"clear, cut off":        {with(clear(key), func(m *made) { m.signed = m.signed[:len(m.signed)-30] }), "", errkind.Invalid, "cut off or damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.compare(t, c.signer, c.kind, c.says)
		})
	}
}

// compare verifies one signature; signer is empty for one that is refused.
func (m made) compare(t *testing.T, signer string, kind errkind.Kind, says string) {
	t.Helper()
	keys, err := ReadKeys([]byte(m.keys))
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if m.detached == nil {
		var opened []byte
		if !IsClear([]byte(m.signed)) {
			t.Error("not seen as a signed text")
		}
		opened, got, err = OpenText(keys, []byte(m.signed), time.Now())
		if err == nil && string(opened) != strings.TrimSuffix(text, "\n") {
			t.Errorf("the signed text is %q", opened)
		}
	} else {
		got, err = Verify(keys, strings.NewReader(m.signed), m.detached, time.Now())
	}
	if signer != "" {
		if err != nil || got != signer {
			t.Errorf("signed by %q, %v; want %s", got, err, signer)
		}
		return
	}
	if errkind.Of(err) != kind || !strings.Contains(err.Error(), says) || got != "" && !errors.Is(err, ErrExpired) {
		t.Errorf("by %q, kind %v: %v; want %v that says %q", got, errkind.Of(err), err, kind, says)
	}
}

// subkey is the fingerprint of the last subkey of a key.
func subkey(t *testing.T, h gpgtest.Home, key string) (found string) {
	t.Helper()
	for line := range strings.Lines(string(h.Run("", "--with-colons", "--list-keys", key))) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" && fields[9] != key {
			found = fields[9]
		}
	}
	return found
}

func TestPeerCheckKey(t *testing.T) {
	t.Parallel()
	h := gpgtest.New(t)
	key := h.NewKey("vendor", "ed25519", "0")
	public := h.Public(key)
	for _, c := range []struct{ text, says string }{
		{public, ""},
		{public + public, ""},
		{"# of the vendor\n" + public, ""},
		{"", "is empty"},
		{" \n", "is empty"},
		{string(h.Run("", "--armor", "--export-secret-keys", key)), "is a private key"},
		{"ssh-ed25519 AAAA ops", "is no OpenPGP public key"},
		{public[:len(public)/2], "is cut off or damaged"},
	} {
		err := CheckKey(c.text)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40q: %v, want %q", c.text, err, c.says)
		}
	}
}

// No bytes in the place of a signature make the reader fail in another way than by an error.
func FuzzVerify(f *testing.F) {
	f.Add([]byte{0x88, 0x75, 0x04}, []byte(clearHead+"\nHash: SHA512\n\nx\n-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, detached, clear []byte) {
		if _, err := Verify(nil, bytes.NewReader(nil), detached, time.Now()); err == nil {
			t.Error("signed by nobody")
		}
		if _, _, err := OpenText(nil, clear, time.Now()); err == nil {
			t.Error("signed by nobody")
		}
	})
}
