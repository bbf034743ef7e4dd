// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/crypto"
	"github.com/bougou/go-ipmi/pkg/handlers"
	"github.com/bougou/go-ipmi/pkg/protocol"
	"github.com/bougou/go-ipmi/pkg/types"
)

// The framing of RMCP and RMCP+ (IPMI 2.0, 13.1.3 and 13.6).
const (
	rmcpVersion   = 0x06
	classASF      = 0x06
	classIPMI     = 0x07
	rmcpHeader    = 4
	sessionHeader = 12
	payloadStart  = rmcpHeader + sessionHeader
	nextHeader    = 0x07
	lanChannel    = 1
)

// The shortest key exchange messages (IPMI 2.0, 13.17, 13.20 and 13.22).
const (
	openLength  = 32
	rakp1Length = 28
	rakp3Length = 8
)

// rmcpPlus answers one datagram of IPMI 2.0.
func (k *controller) rmcpPlus(pkt []byte) []byte {
	id, seq, kind, flags, payload, ok := protocol.ParseRMCPPlusHeader(pkt)
	if !ok {
		return nil
	}
	switch {
	case kind == protocol.PayloadOpenSessionRequest && len(payload) >= openLength:
		out, err := handlers.HandleOpenSession(k.ctx, k.lib, payload)
		return plainPacket(protocol.PayloadOpenSessionResponse, out, err)
	case kind == protocol.PayloadRAKPMessage1 && len(payload) >= rakp1Length && len(payload) >= rakp1Length+int(payload[27]):
		out, err := k.rakp1(payload)
		return plainPacket(protocol.PayloadRAKPMessage2, out, err)
	case kind == protocol.PayloadRAKPMessage3 && len(payload) >= rakp3Length:
		out, err := k.rakp3(payload)
		return plainPacket(protocol.PayloadRAKPMessage4, out, err)
	case kind == protocol.PayloadIPMI && id == 0:
		if out := k.outside(payload); out != nil {
			return protocol.BuildRMCPPlusPacket(protocol.PayloadIPMI, 0, 0, 0, out)
		}
	case kind == protocol.PayloadIPMI, kind == protocol.PayloadSOL && id != 0:
		return k.inside(pkt, id, seq, kind, flags, payload)
	}
	return nil
}

// plainPacket frames a message of the key exchange.
func plainPacket(kind uint8, out []byte, err error) []byte {
	if err != nil || out == nil {
		return nil
	}
	return protocol.BuildRMCPPlusPacket(kind, 0, 0, 0, out)
}

// roles are the IPMI privileges of the chassis' roles.
var roles = map[string]bmc.PrivilegeLevel{
	"Administrator": bmc.PrivilegeLevelAdministrator,
	"Operator":      bmc.PrivilegeLevelOperator,
	"ReadOnly":      bmc.PrivilegeLevelUser,
}

// learnUsers takes the accounts as they are now. Those that IPMI cannot hold
// (22.28 and 22.30: 16 and 20 bytes) are Redfish's alone; nobody is anonymous.
func (k *controller) learnUsers() {
	users := bmc.NewUserStore()
	if u, err := users.Get(1); err == nil {
		u.Enabled = false
	}
	for _, a := range k.c.Accounts() {
		level, ok := roles[a.Role]
		if !ok || len(a.Username) > bmc.MaxUserNameLen || len(a.Password) > bmc.MaxPasswordLen {
			continue
		}
		u, err := users.Add(uint8(a.ID), a.Username)
		if err != nil {
			continue
		}
		u.SetPassword([]byte(a.Password))
		u.Enabled = a.Enabled && !k.c.Locked(a.Username)
		u.ChannelAccess[lanChannel] = bmc.UserChannelAccess{MaxPrivilege: level, Enabled: true}
	}
	k.lib.Users = users
}

// rakp1 begins the key exchange. Consoles compare the keys first and most give up
// without a word, so that a wrong password is seen by makers only that count what
// was begun and not ended.
func (k *controller) rakp1(payload []byte) ([]byte, error) {
	id, name := binary.LittleEndian.Uint32(payload[4:]), string(payload[rakp1Length:rakp1Length+int(payload[27])])
	if half := k.half; half != nil && half.BMCID != id && half.State == bmc.SessionStatePending && half.User != nil && k.o.CountAbandoned {
		k.failed(half.User)
	}
	k.half = nil
	k.learnUsers()
	out, err := handlers.HandleRAKP1(k.ctx, k.lib, payload)
	if sess, found := k.lib.Sessions.Get(id); found == nil && sess.User != nil && sess.User.Name == name {
		k.half = sess
	}
	return out, err
}

// failed counts a failed log-in.
func (k *controller) failed(u *bmc.User) {
	_, _ = k.c.Login(u.Name, passwordOf(u)+"\x00") // never the right one
}

func passwordOf(u *bmc.User) string { return string(bytes.TrimRight(u.Password[:], "\x00")) }

// rakp3 ends the key exchange. The chassis counts what failed, also when it was
// the console that found the keys to differ. A session begins at User level and
// may rise to what was asked for, which the library has checked (22.18).
func (k *controller) rakp3(payload []byte) ([]byte, error) {
	sess, err := k.lib.Sessions.Get(binary.LittleEndian.Uint32(payload[4:]))
	if err == nil && sess.State == bmc.SessionStateActive { // repeated: the answer was lost
		if sess == k.opened {
			return k.rakp4, nil
		}
		return nil, nil
	}
	out, herr := handlers.HandleRAKP3(k.ctx, k.lib, payload)
	if err != nil || sess.User == nil {
		return out, herr
	}
	k.half = nil
	if sess.State != bmc.SessionStateActive {
		k.failed(sess.User)
		return out, herr
	}
	_, _ = k.c.Login(sess.User.Name, passwordOf(sess.User)) // ends the count
	if asked := bmc.PrivilegeLevel(sess.Role & 0x0f); asked != 0 {
		sess.MaxPrivilege = min(sess.MaxPrivilege, asked)
	}
	sess.MaxPrivilege = min(sess.MaxPrivilege, sess.User.ChannelAccess[lanChannel].MaxPrivilege)
	sess.PrivilegeLevel = min(sess.MaxPrivilege, bmc.PrivilegeLevelUser)
	k.opened, k.rakp4 = sess, out
	return out, herr
}

// open are the commands that need no session (IPMI 2.0, appendix G).
var open = []types.Command{types.CommandGetChannelAuthCapabilities, types.CommandGetChannelCipherSuites, types.CommandGetSystemGUID}

// outside answers a command that came without a session, if it may.
func (k *controller) outside(payload []byte) []byte {
	fn, cmd, data, seq, ok := protocol.ParseIPMIRequest(payload)
	if !ok {
		return nil
	}
	if !slices.ContainsFunc(open, func(c types.Command) bool { return uint8(c.NetFn) == fn && c.ID == cmd }) {
		return protocol.BuildIPMIResponse(fn, cmd, seq, uint8(types.CodeCannotExecuteCommandSecurityRestrict), nil)
	}
	out, code, _ := k.reg.Dispatch(k.ctx, &handlers.HandlerContext{BMC: k.lib}, fn, cmd, data)
	return protocol.BuildIPMIResponse(fn, cmd, seq, uint8(code), out)
}

// outside15 answers the same in the framing of IPMI 1.5, in which consoles ask
// for the capabilities of a channel first (13.6, 22.13).
func (k *controller) outside15(pkt []byte) []byte {
	const header = rmcpHeader + 10 // authentication type, sequence, session, length
	if len(pkt) < header || len(pkt) < header+int(pkt[header-1]) || binary.LittleEndian.Uint32(pkt[9:]) != 0 {
		return nil
	}
	out := k.outside(pkt[header : header+int(pkt[header-1])])
	if out == nil || len(out) > 255 {
		return nil
	}
	answer := append([]byte{rmcpVersion, 0, 0xff, classIPMI}, make([]byte, 10)...)
	answer[header-1] = byte(len(out))
	return append(answer, out...)
}

// inside answers what came in a session: a command, or a packet of the console. What is not signed and encrypted with
// the session's keys, or was seen before, is dropped without a word (13.28).
func (k *controller) inside(pkt []byte, id, seq uint32, kind, flags uint8, payload []byte) []byte {
	const both = protocol.PayloadEncryptedFlag | protocol.PayloadAuthenticatedFlag
	k.lib.Sessions.EvictExpired()
	sess, err := k.lib.Sessions.Get(id)
	if err != nil || sess.State != bmc.SessionStateActive || flags&both != both || !isSigned(pkt, len(payload), sess) {
		return nil
	}
	if !bmc.InboundSeqValid(sess.InboundSeq, seq) || seq <= sess.InboundSeq {
		return nil
	}
	sess.InboundSeq = seq
	request, err := crypto.DecryptAESPayload(payload, sess.K2)
	if err != nil {
		return nil
	}
	if c := k.console; c != nil && c.sess == sess {
		c.heard, c.at = k.clk.Now(), time.Now()
	}
	if kind == protocol.PayloadSOL {
		return k.typed(sess, request)
	}
	fn, cmd, data, mseq, ok := protocol.ParseIPMIRequest(request)
	if !ok {
		return nil
	}
	out, code := k.dispatch(sess, fn, cmd, data)
	if cmd == types.CommandCloseSession.ID && k.console != nil && !k.open(k.console.sess) {
		k.hangUp()
	}
	return k.sealed(protocol.PayloadIPMI, protocol.BuildIPMIResponse(fn, cmd, mseq, uint8(code), out), sess)
}

// dispatch does what a command of a session asks.
func (k *controller) dispatch(sess *bmc.Session, fn, cmd uint8, data []byte) ([]byte, types.CompletionCode) {
	k.asks = sess
	channel, _ := k.lib.Channels.Get(sess.Channel)
	hctx := &handlers.HandlerContext{BMC: k.lib, Session: sess, Channel: channel, User: sess.User}
	out, code, _ := k.reg.Dispatch(k.ctx, hctx, fn, cmd, data)
	return out, code
}

// isSigned checks the integrity code behind a payload of n bytes (13.28.4).
func isSigned(pkt []byte, n int, sess *bmc.Session) bool {
	size, ok := crypto.IntegrityAuthCodeLen(sess.IntegrityAlg)
	pad := types.IntegrityPadLen(sessionHeader, n)
	end := payloadStart + n + pad + 2
	if !ok || size == 0 || len(pkt) != end+size || pkt[end-2] != byte(pad) || pkt[end-1] != nextHeader {
		return false
	}
	want, err := crypto.SessionIntegrityAuthCode(sess.IntegrityAlg, pkt[rmcpHeader:end], sess.K1, "")
	return err == nil && crypto.Equal(want, pkt[end:])
}

// sealed encrypts, frames and signs what a session is sent. It is safe for
// concurrent use.
func (k *controller) sealed(kind uint8, message []byte, sess *bmc.Session) []byte {
	body, err := crypto.EncryptAESPayload(message, sess.K2, crypto.RandomBytes(16))
	if err != nil {
		return nil
	}
	k.sealing.Lock()
	sess.OutboundSeq++
	number := sess.OutboundSeq
	k.sealing.Unlock()
	pkt := protocol.BuildRMCPPlusPacket(kind, protocol.PayloadEncryptedFlag|protocol.PayloadAuthenticatedFlag,
		sess.ConsoleID, number, body)
	pad := types.IntegrityPadLen(sessionHeader, len(body))
	pkt = append(pkt, bytes.Repeat([]byte{0xff}, pad)...)
	pkt = append(pkt, byte(pad), nextHeader)
	code, err := crypto.SessionIntegrityAuthCode(sess.IntegrityAlg, pkt[rmcpHeader:], sess.K1, "")
	if err != nil {
		return nil
	}
	return append(pkt, code...)
}
