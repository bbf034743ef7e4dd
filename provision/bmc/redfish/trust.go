// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/internal/errkind"
)

// TLSMode is how a BMC's certificate is trusted, in the inventory's words.
type TLSMode string

// The ways of trust. The zero value is PinFirstSeen.
const (
	PinFirstSeen TLSMode = "pin-first-seen" // the certificate of the first contact, and no other later
	Fingerprint  TLSMode = "fingerprint"    // only the certificate with this SHA-256
	Authority    TLSMode = "ca"             // only certificates of these authorities
	Insecure     TLSMode = "insecure"       // any
)

// TLS is a trust in certificates. Almost every BMC comes with a certificate that
// it signed itself, so that names and authorities prove nothing there.
type TLS struct {
	Mode        TLSMode
	Fingerprint string // mode fingerprint: SHA-256 of the certificate in hex, with or without colons
	CA          string // mode ca: PEM text of the authorities' certificates
}

// trust decides on certificates. It is safe for concurrent use: handshakes run in
// goroutines of the HTTP client.
type trust struct {
	mode  TLSMode
	addr  netip.Addr
	roots *x509.CertPool

	mu   sync.Mutex // guards the fields below
	want string     // the only good fingerprint; "": any
	seen string     // of the last certificate that was trusted
}

// newTrust makes the trust of one BMC; pinned is what an earlier run has seen.
func newTrust(t TLS, pinned string, addr netip.Addr) (*trust, error) {
	tr := &trust{mode: t.Mode, addr: addr}
	switch t.Mode {
	case PinFirstSeen, "":
		tr.mode, tr.want = PinFirstSeen, plainHex(pinned)
	case Fingerprint:
		if tr.want = plainHex(t.Fingerprint); len(tr.want) != 2*sha256.Size {
			return nil, errkind.New(errkind.Invalid, "tls fingerprint has %d hex digits, SHA-256 has %d", len(tr.want), 2*sha256.Size).
				Do("Give the SHA-256 of the BMC's certificate.")
		}
	case Authority:
		tr.roots = x509.NewCertPool()
		if !tr.roots.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, errkind.New(errkind.Invalid, "tls ca holds no certificate").Do("Give the authority's certificate as PEM text.")
		}
	case Insecure:
	default:
		return nil, errkind.New(errkind.Unsupported, "tls mode %q is not known", t.Mode)
	}
	return tr, nil
}

// plainHex brings a fingerprint into the form that is compared.
func plainHex(s string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), ":", ""))
}

// config returns the TLS settings: the library's own check, by name and system
// authorities, is replaced by ours. The post-quantum key exchange is left out: its
// first message does not fit into one packet, which old TLS servers, and those of
// BMCs are old, answer with a closed connection (tldr.fail).
func (t *trust) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: t.verify,
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384}}
}

// verify decides on the certificate of one connection, before anything secret is
// sent.
func (t *trust) verify(cs tls.ConnectionState) error {
	if len(cs.PeerCertificates) == 0 {
		return errkind.New(errkind.Mismatch, "the bmc shows no certificate")
	}
	leaf := cs.PeerCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	got := hex.EncodeToString(sum[:])
	if t.mode == Authority {
		if err := t.issued(leaf, cs.PeerCertificates[1:]); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.want != "" && got != t.want {
		return t.refuse(got)
	}
	if t.mode == PinFirstSeen {
		t.want = got
	}
	t.seen = got
	return nil
}

// refuse is the error about a certificate that is not the trusted one.
func (t *trust) refuse(got string) error {
	if t.mode == Fingerprint {
		return errkind.New(errkind.Mismatch, "%w: its SHA-256 is %s, the inventory says %s", ErrCertificate, got, t.want).
			Do("Read the fingerprint on the BMC's own page and correct the tls block, or find out who answers at this address. Nothing secret was sent.")
	}
	return errkind.New(errkind.Mismatch, "%w: its SHA-256 is %s, that of the first contact was %s", ErrCertificate, got, t.want).
		Do("If the BMC was replaced, reset or given a new certificate, compare the new fingerprint with the BMC's own page and then forget the recorded one. " +
			"If not, another device answers at this address. Nothing secret was sent.")
}

// issued checks that one of the authorities has issued the certificate. The name
// in it is not compared, since the inventory knows BMCs by address; addresses in
// it are, so that one BMC cannot stand for another one.
func (t *trust) issued(leaf *x509.Certificate, more []*x509.Certificate) error {
	between := x509.NewCertPool()
	for _, c := range more {
		between.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: t.roots, Intermediates: between}); err != nil {
		return errkind.New(errkind.Mismatch, "%w, for no authority of the inventory has issued it: %s", ErrCertificate, OneLine(err.Error())).
			Do("Give the BMC a certificate of that authority, correct the tls block, and check the controller's clock.")
	}
	ours := func(ip []byte) bool { a, ok := netip.AddrFromSlice(ip); return ok && a.Unmap() == t.addr.Unmap() }
	for i, ip := range leaf.IPAddresses {
		if ours(ip) {
			return nil
		}
		if i == len(leaf.IPAddresses)-1 {
			return errkind.New(errkind.Mismatch, "%w: it is for the addresses %s", ErrCertificate, slices.Collect(texts(leaf.IPAddresses))).
				Do("Two BMCs may have exchanged addresses; give each a certificate with its own.")
		}
	}
	return nil
}

// certificate returns the fingerprint that was last trusted.
func (t *trust) certificate() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen
}
