// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/bougou/go-ipmi/pkg/crypto"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
)

// guard is the UDP connection that go-ipmi v0.9.0 works on. It sees every
// datagram in both directions, derives the session keys a second time with that
// library's own functions, and lets only good answers through, because the
// library itself
//   - takes the algorithms that the Open Session Response names, so that a
//     forged answer could turn authentication and encryption off;
//   - does not check the integrity code of answers (IPMI 2.0, 13.28.4): a
//     forged "power is off" would be believed;
//   - decrypts in a goroutine of its own and panics there on a payload that is
//     no whole number of blocks or has a wrong pad length: one forged datagram
//     would end the process.
//
// Datagrams that fail are dropped and counted; the caller sees a time-out.
type guard struct {
	net.Conn
	suite types.CipherSuiteID

	mu       sync.Mutex // guards the fields below: writer and reader are two goroutines
	username string
	password secret.Value
	role     byte   // of RAKP Message 1
	console  []byte // random number of RAKP Message 1
	k1, k2   []byte
	answered bool // any good datagram came
	dropped  int
	status   types.RmcpStatusCode // the last error that an Open Session or RAKP message brought
	bmcID    uint32               // the BMC's number of the session, once something was sent in it
	sequence uint32               // of the last datagram that was sent in the session
	serial   bool                 // serial over LAN is let through; before, nobody could read it
}

// Sizes and offsets of RMCP+ messages: RMCP header 4 bytes, session header 12
// bytes (IPMI 2.0, table 13-8), then the payload.
const (
	rmcpHeader    = 4
	rmcpClassIPMI = 7
	payloadStart  = rmcpHeader + types.SessionHeader20SizeMin
	maxDatagram   = 4096
)

// errForged is why a datagram was dropped.
var errForged = errors.New("datagram is not from the bmc of this session")

// Dial makes guard the "proxy" of go-ipmi's UDP client: the connection is
// already there, network and address are not looked at (the library cannot
// write IPv6 addresses).
func (g *guard) Dial(_, _ string) (net.Conn, error) { return g, nil }

// dialGuard opens the UDP connection of one session.
func dialGuard(ctx context.Context, n network.Network, t Target) (*guard, error) {
	conn, err := network.Or(n).Dial(ctx, "udp", t.Addr.String())
	if err != nil {
		return nil, err
	}
	return &guard{Conn: conn, suite: types.CipherSuiteID(t.CipherSuite), username: t.Username, password: t.Password}, nil
}

// Write sends b and remembers what RAKP Message 1 offered.
func (g *guard) Write(b []byte) (int, error) {
	if p, ok := sessionPayload(b); ok && b[rmcpHeader+1]&0x3f == byte(types.PayloadTypeRAKPMessage1) && len(p) >= 28 {
		g.mu.Lock()
		g.console = append([]byte(nil), p[8:24]...)
		g.role = p[24]
		g.k1, g.k2 = nil, nil
		g.mu.Unlock()
	} else if ok && b[rmcpHeader+1]&0xc0 == 0xc0 {
		g.mu.Lock()
		g.bmcID = binary.LittleEndian.Uint32(b[rmcpHeader+2:])
		g.sequence = binary.LittleEndian.Uint32(b[rmcpHeader+6:])
		g.mu.Unlock()
	}
	return g.Conn.Write(b)
}

// Read returns the next good datagram.
func (g *guard) Read(b []byte) (int, error) {
	for {
		n, err := g.Conn.Read(b)
		if err != nil {
			return n, err
		}
		if g.admit(b[:n]) == nil {
			return n, nil
		}
	}
}

// admit checks one datagram and counts it.
func (g *guard) admit(b []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.check(b); err != nil {
		g.dropped++
		return err
	}
	g.answered = true
	return nil
}

// hasAnswer reports whether any good datagram came.
func (g *guard) hasAnswer() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.answered
}

// drops returns how many datagrams were dropped.
func (g *guard) drops() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dropped
}

// check decides on one datagram; g.mu is held.
func (g *guard) check(b []byte) error {
	payload, ok := sessionPayload(b)
	if !ok {
		return errForged
	}
	switch kind := b[rmcpHeader+1]; types.PayloadType(kind & 0x3f) {
	case types.PayloadTypeRmcpOpenSessionResponse:
		return g.checkOpen(payload)
	case types.PayloadTypeRAKPMessage2:
		return g.learnKeys(payload)
	case types.PayloadTypeRAKPMessage4:
		g.refused(payload)
		return nil // the library checks its integrity value with the keys
	case types.PayloadTypeIPMI, types.PayloadTypeSOL:
		if types.PayloadType(kind&0x3f) == types.PayloadTypeSOL && !g.serial {
			return errForged
		}
		if kind&0xc0 != 0xc0 { // bits 7:6, encrypted and authenticated
			return errForged
		}
		return g.checkSession(b, payload)
	}
	return errForged
}

// refused remembers the status of a message that says no. ipmi_sim sends such
// messages so short that the library cannot read them.
func (g *guard) refused(p []byte) bool {
	if len(p) < 2 || p[1] == 0 {
		return false
	}
	g.status = types.RmcpStatusCode(p[1])
	return true
}

// refusal returns the status with which the BMC said no, as an error, or nil.
func (g *guard) refusal() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.status == 0 {
		return nil
	}
	return classifyStatus(types.NewRmcpStatusError(g.status))
}

// checkOpen refuses algorithms other than those of the configured suite.
func (g *guard) checkOpen(p []byte) error {
	if g.refused(p) {
		return nil
	}
	auth, integrity, crypt, known := types.GetCipherSuiteAlgorithms(g.suite)
	if !known || len(p) < 36 || p[16] != byte(auth) || p[24] != byte(integrity) || p[32] != byte(crypt) {
		return errForged
	}
	return nil
}

// learnKeys derives K1 and K2 from RAKP Message 2 (IPMI 2.0, 13.31 and 13.32).
func (g *guard) learnKeys(p []byte) error {
	if g.refused(p) {
		return nil
	}
	auth, _, _, known := types.GetCipherSuiteAlgorithms(g.suite)
	if !known || len(p) < 40 || g.console == nil {
		return errForged
	}
	key := crypto.PadPassword20([]byte(g.password.Reveal()))
	_, k1, k2, err := crypto.DeriveSessionKeys(auth, g.console, p[8:24], g.role, g.username, key)
	if err != nil {
		return fmt.Errorf("%w: %w", errForged, err)
	}
	g.k1, g.k2 = k1, k2
	return nil
}

// checkSession checks the integrity code and the padding of an answer inside
// the session.
func (g *guard) checkSession(b, payload []byte) error {
	_, integrity, _, known := types.GetCipherSuiteAlgorithms(g.suite)
	size, _ := crypto.IntegrityAuthCodeLen(integrity)
	if !known || g.k1 == nil || len(b) < payloadStart+len(payload)+2+size {
		return errForged
	}
	signed, code := b[rmcpHeader:len(b)-size], b[len(b)-size:]
	want, err := crypto.SessionIntegrityAuthCode(integrity, signed, g.k1, "")
	if err != nil || !crypto.Equal(want, code) {
		return errForged
	}
	if len(payload) < 32 || len(payload)%16 != 0 {
		return errForged
	}
	if _, err := crypto.DecryptAESPayload(payload, g.k2); err != nil {
		return errForged
	}
	return nil
}

// sessionPayload returns the payload of an RMCP+ datagram.
func sessionPayload(b []byte) ([]byte, bool) {
	if len(b) < payloadStart || b[3]&0x7f != rmcpClassIPMI || b[rmcpHeader] != byte(types.AuthTypeRMCPPlus) ||
		b[rmcpHeader+1]&0x3f == byte(types.PayloadTypeOEM) {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint16(b[payloadStart-2:]))
	if len(b) < payloadStart+n {
		return nil, false
	}
	return b[payloadStart : payloadStart+n], true
}
