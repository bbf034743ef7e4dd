// SPDX-License-Identifier: Apache-2.0

// Package bmc speaks with the baseboard management controllers of nodes: power,
// next boot device and identity. It never learns why it is asked.
//
// A Session is one connection to one BMC through one driver, chosen by the
// target's protocol and registered in bmclib's registrar: a request never falls
// through to a second driver, and a command that changes power is carried out at
// most once. What became of it is read back and returned as an Outcome. A Pool
// keeps one Session for each BMC and lets one request at a time through to it.
// What only some BMCs can do is asked for by Use.
//
// Errors carry an errkind.Kind: Unreachable (nothing answers), Auth (user or
// password refused; ErrLocked is in the chain when the account is locked),
// Timeout (an answer is missing), Refused (the BMC said no, or accepts a setting
// and does not keep it), Unsupported (this BMC or driver cannot), Mismatch (the
// target is wrong, or another certificate than the trusted one is shown).
// Strings that come from a BMC are untrusted and not escaped here.
package bmc

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// Protocol names the protocol of a BMC as the inventory spells it.
type Protocol string

// The protocols that an inventory can name.
const (
	IPMI    Protocol = "ipmi"    // IPMI 2.0 over RMCP+
	Redfish Protocol = "redfish" // HTTPS and JSON (DMTF DSP0266)
	RPC     Protocol = "rpc"     // a service of the site's own, by the messages of bmclib's provider rpc
)

// DefaultTimeout is how long a call waits for one answer of the BMC when
// Target.Timeout is zero and the protocol is IPMI. Real BMCs answer within 5 to
// 50 ms, but writes that touch the power supply have been seen to take seconds.
// For Redfish it is redfish.DefaultTimeout.
const DefaultTimeout = 5 * time.Second

// TLS is how the certificate of a Redfish BMC is trusted.
type TLS = redfish.TLS

// TLSMode is a way of trust, in the inventory's words.
type TLSMode = redfish.TLSMode

// The ways of trust; the zero value is TLSPinFirstSeen.
const (
	TLSPinFirstSeen = redfish.PinFirstSeen
	TLSFingerprint  = redfish.Fingerprint
	TLSAuthority    = redfish.Authority
	TLSInsecure     = redfish.Insecure
)

// ErrLocked is in the error, of kind Auth, of a log-in to an account that the BMC
// has locked. Trying again prolongs the lock on many BMCs.
var ErrLocked = redfish.ErrLocked

// ErrCertificate is in the error, of kind Mismatch, about a certificate that is
// not trusted; its text names both fingerprints.
var ErrCertificate = redfish.ErrCertificate

// Target is everything that is needed to reach one BMC.
type Target struct {
	Node     string   // the node's name, for error texts
	Protocol Protocol // zero: IPMI
	Addr     netip.AddrPort
	Username string // IPMI: at most 16 bytes (IPMI 2.0, 22.28)
	Password secret.Value
	// CipherSuite is the RMCP+ cipher suite (IPMI 2.0, 22.15.2): 17 (SHA-256,
	// AES) or 3 (SHA-1, AES). Zero means 17. It is never negotiated: asking
	// costs 5 s on BMCs that do not answer the question, and an answer that is
	// not authenticated could be used to weaken the session.
	CipherSuite uint8
	// TLS is Redfish's and RPC's: how the certificate is trusted.
	TLS TLS
	// Pinned is, for TLSPinFirstSeen, the SHA-256 in hex of the certificate that
	// an earlier contact has seen (Handle.Certificate). "": this is the first.
	Pinned string
	// Endpoint is RPC's: the https URL of the service, with an IP address; Addr then is
	// only what the service knows the BMC by, and Password signs the requests.
	Endpoint string
	// Serial is the node's serial number in the inventory: on a Redfish service
	// with several systems it tells which one is the node. May be empty.
	Serial string
	// Timeout is the longest wait for one answer. Zero: DefaultTimeout.
	Timeout time.Duration
}

// Supported tells, without touching the network, whether there is a driver for
// the protocol. The error is of kind Unsupported and says what to do.
func Supported(p Protocol) error {
	switch p {
	case IPMI, Redfish, RPC, "":
		return nil
	}
	return errkind.New(errkind.Unsupported, "bmc protocol %q is not known", p).
		Do(`Set protocol = "redfish", "ipmi" or "rpc".`)
}

// withDefaults returns t with zero fields filled in.
func (t Target) withDefaults() Target {
	if t.Protocol == "" {
		t.Protocol = IPMI
	}
	if t.CipherSuite == 0 {
		t.CipherSuite = defaultCipherSuite
	}
	switch {
	case t.Timeout > 0:
	case t.Protocol == Redfish, t.Protocol == RPC:
		t.Timeout = redfish.DefaultTimeout
	default:
		t.Timeout = DefaultTimeout
	}
	return t
}

// check refuses a target that no BMC could accept.
func (t Target) check() error {
	if err := Supported(t.Protocol); err != nil {
		return err
	}
	switch {
	case !t.Addr.IsValid() || t.Addr.Port() == 0:
		return errkind.New(errkind.Invalid, "bmc address %q is not complete", t.Addr)
	case t.Protocol == Redfish:
		return nil // its limits are the BMC's own
	case t.Protocol == RPC:
		_, err := t.service()
		return err
	case t.CipherSuite != 3 && t.CipherSuite != 17:
		return errkind.New(errkind.Unsupported, "cipher suite %d is not supported", t.CipherSuite).
			Do("Set cipher_suite to 17 or 3.")
	case len(t.Username) > maxUsername:
		return errkind.New(errkind.Invalid, "bmc user name has %d bytes, IPMI allows %d", len(t.Username), maxUsername)
	case len(t.Password.Reveal()) > maxPassword:
		return errkind.New(errkind.Invalid, "bmc password is longer than the %d bytes that IPMI allows", maxPassword)
	}
	return nil
}

// wrap puts the node and the address in front of err.
func (t Target) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	at := t.Addr.String()
	if t.Protocol == RPC {
		at = t.Addr.Addr().String() + " by " + t.Endpoint
	}
	e := errkind.New(errkind.Of(err), "node %s: bmc %s: %s: %w", t.Node, at, what, err)
	return e.Do(errkind.Action(err))
}

// equal reports whether a session to o also serves t. A pin that the session has
// seen itself makes no difference.
func (t Target) equal(o Target, seen string) bool {
	if t.Pinned == "" || t.Pinned == seen {
		t.Pinned = o.Pinned
	}
	return t == o
}

// Verdict says how sure it is that a write took effect.
type Verdict uint8

// The verdicts. The zero value claims nothing.
const (
	Unverifiable Verdict = iota // cannot be read back; its effect must prove it
	Verified                    // read back as asked for
	Contradicted                // read back as something else
)

// String returns the verdict's name.
func (v Verdict) String() string {
	switch v {
	case Unverifiable:
		return "unverifiable"
	case Verified:
		return "verified"
	case Contradicted:
		return "contradicted"
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// Outcome is what became of a write. It is meaningful also beside an error:
// Sent then tells whether a command may have reached the BMC.
type Outcome struct {
	Verdict  Verdict
	Evidence string // what was read back, for the journal; one line
	Sent     int    // commands that change something and left for the BMC
	// Persistent says of a boot device that the BMC keeps it for every boot, though it was
	// asked for the next one only: the caller puts it back after that boot.
	Persistent bool
}

// Power reads and changes the power of a node.
type Power interface {
	PowerState(ctx context.Context) (PowerState, error)
	SetPower(ctx context.Context, a PowerAction) (Outcome, error)
}

// BootDevice sets what a node boots from next.
type BootDevice interface {
	SetBoot(ctx context.Context, b Boot) (Outcome, error)
}

// Identifier tells which node and which BMC this is.
type Identifier interface {
	Identity(ctx context.Context) (Identity, error)
}

var (
	_ Power      = (*Session)(nil)
	_ BootDevice = (*Session)(nil)
	_ Identifier = (*Session)(nil)
	_ Power      = (*Handle)(nil)
	_ BootDevice = (*Handle)(nil)
	_ Identifier = (*Handle)(nil)
)
