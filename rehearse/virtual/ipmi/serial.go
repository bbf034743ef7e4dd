// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"context"
	"encoding/binary"
	"net"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/protocol"
	"github.com/bougou/go-ipmi/pkg/types"
)

// Serial over LAN (IPMI 2.0, sections 15 and 24): one console at a time, always
// encrypted, stop and wait.
const (
	payloadSerial     = 1
	serialHead        = 4                     // bytes before the characters (table 15-2)
	serialMost        = 200                   // characters in one packet
	serialGather      = 50 * time.Millisecond // from the first character to the packet (26.3, parameter 3)
	serialRetry       = 500 * time.Millisecond
	serialTries       = 7 // a console that acknowledges none of them is gone
	serialNack        = 0x40
	serialDeactivated = 0x10
	serialEncrypted   = 0xc0 // encryption and authentication, as asked for in Activate Payload
)

// Completion codes of Activate and Deactivate Payload (tables 24-2 and 24-3).
const (
	codePayloadTaken    = types.CompletionCode(0x80) // Deactivate: it is not active
	codePayloadDisabled = types.CompletionCode(0x81)
	codePayloadClear    = types.CompletionCode(0x84) // not without encryption
)

// console is somebody who reads the serial line.
type console struct {
	sess  *bmc.Session
	to    net.Addr
	heard time.Time // last; sessions are dropped when they are silent
	at    time.Time // the same on the wall's clock
	acks  chan ack
	typed byte // number of the last packet with characters
	end   context.CancelFunc
}

// ack is what a console says of a packet.
type ack struct {
	number, count byte
	nack          bool
}

// activate is Activate Payload (24.1).
func (k *controller) activate(req []byte) ([]byte, types.CompletionCode) {
	switch {
	case req[0]&0x3f != payloadSerial || req[1]&0x0f != 1:
		return nil, types.CodeParameterOutOfRange
	case k.o.Serial == nil:
		return nil, codePayloadDisabled
	case req[2]&serialEncrypted != serialEncrypted:
		return nil, codePayloadClear
	case k.console != nil && k.console.sess != k.asks && k.clk.Now().Sub(k.console.heard) <= bmc.DefaultInactivityTimeout:
		return nil, codePayloadTaken
	case k.console == nil || k.console.sess != k.asks:
		k.hangUp()
		k.listen()
	}
	out := []byte{0, 0, 0, 0}
	out = binary.LittleEndian.AppendUint16(out, serialMost+serialHead) // either way
	out = binary.LittleEndian.AppendUint16(out, serialMost+serialHead)
	out = binary.LittleEndian.AppendUint16(out, Port)
	return binary.LittleEndian.AppendUint16(out, 0xffff), types.CodeOK // no VLAN
}

// keepConsole keeps the session of a console whose client is there: that keeps its session by the clock on
// the wall, which the time of the chassis may outrun.
func (k *controller) keepConsole() {
	if c := k.console; c != nil && time.Since(c.at) <= bmc.DefaultInactivityTimeout {
		c.sess.LastActivity = k.clk.Now()
	}
}

// open reports whether a session was not closed.
func (k *controller) open(sess *bmc.Session) bool {
	_, err := k.lib.Sessions.Get(sess.BMCID)
	return err == nil
}

// deactivate is Deactivate Payload (24.2): by whoever may operate the BMC, also
// when another session has the console, which is told.
func (k *controller) deactivate(req []byte) ([]byte, types.CompletionCode) {
	switch {
	case req[0]&0x3f != payloadSerial || req[1]&0x0f != 1:
		return nil, types.CodeParameterOutOfRange
	case k.console == nil:
		return nil, codePayloadTaken
	}
	if c := k.console; c.sess != k.asks {
		k.transmit(c, []byte{0, 0, 0, serialDeactivated})
	}
	k.hangUp()
	return nil, types.CodeOK
}

// activation is Get Payload Activation Status (24.4).
func (k *controller) activation(req []byte) ([]byte, types.CompletionCode) {
	if req[0]&0x3f != payloadSerial {
		return nil, types.CodeParameterOutOfRange
	}
	active := byte(0)
	if k.console != nil {
		active = 1
	}
	return []byte{1, active, 0}, types.CodeOK // one instance at most
}

// serialConfig is Get SOL Configuration Parameters (26.3), as they stand here.
func (k *controller) serialConfig(req []byte) ([]byte, types.CompletionCode) {
	const revision, rate115200 = 0x11, 0x0a
	enabled := byte(0)
	if k.o.Serial != nil {
		enabled = 1
	}
	params := map[byte][]byte{
		0: {0},       // set complete
		1: {enabled}, // SOL enable
		2: {serialEncrypted | byte(bmc.PrivilegeLevelOperator)},
		3: {byte(serialGather / (5 * time.Millisecond)), serialMost},
		4: {serialTries, byte(serialRetry / (10 * time.Millisecond))},
		5: {rate115200}, 6: {rate115200}, // kept, in force
		7: {lanChannel},
		8: binary.LittleEndian.AppendUint16(nil, Port),
	}
	p, ok := params[req[1]]
	if !ok {
		return nil, types.CodeParameterNotSupported
	}
	if req[0]&0x80 != 0 { // the revision only
		p = nil
	}
	return append([]byte{revision}, p...), types.CodeOK
}

// listen makes the session that asks the console, from now on.
func (k *controller) listen() {
	ctx, cancel := context.WithCancel(k.ctx)
	c := &console{sess: k.asks, to: k.from, heard: k.clk.Now(), at: time.Now(), acks: make(chan ack, 1), end: cancel}
	k.console = c
	k.o.Serial.open(true)
	k.wg.Go(func() { k.pump(ctx, c) })
}

// hangUp ends the console, if there is one.
func (k *controller) hangUp() {
	if k.console != nil {
		k.console.end()
		k.console = nil
		k.o.Serial.open(false)
	}
}

// pump sends what the node prints, packet by packet, until ctx ends or the console
// is gone.
func (k *controller) pump(ctx context.Context, c *console) {
	for number := byte(1); ; number = number%15 + 1 {
		select {
		case <-ctx.Done():
			return
		case <-k.o.Serial.more:
		}
		if k.clk.Sleep(ctx, serialGather) != nil {
			return
		}
		text := k.o.Serial.peek(serialMost)
		if len(text) == 0 { // of a console before this one
			continue
		}
		taken, ok := k.deliver(ctx, c, number, text)
		if !ok || ctx.Err() != nil {
			return
		}
		k.o.Serial.drop(taken)
		if len(k.o.Serial.peek(1)) > 0 {
			select {
			case k.o.Serial.more <- struct{}{}:
			default:
			}
		}
	}
}

// deliver sends one packet until it is acknowledged, and returns how many of its
// characters were taken; false: the console is gone.
func (k *controller) deliver(ctx context.Context, c *console, number byte, text []byte) (int, bool) {
	for range serialTries + 1 {
		k.transmit(c, append([]byte{number, 0, 0, 0}, text...))
		wait, cancel := k.clk.WithTimeout(ctx, serialRetry)
		n, ok := c.answer(wait, number)
		cancel()
		switch {
		case ok:
			return min(n, len(text)), true
		case ctx.Err() != nil:
			return 0, false
		}
	}
	return 0, false
}

// answer waits for the acknowledgement of a packet.
func (c *console) answer(ctx context.Context, number byte) (int, bool) {
	for {
		select {
		case <-ctx.Done():
			return 0, false
		case a := <-c.acks:
			if a.number == number && !a.nack {
				return int(a.count), true
			}
		}
	}
}

// typed takes a packet of the console: an acknowledgement, or characters, which go to the node
// once: a packet that comes again is only acknowledged.
func (k *controller) typed(sess *bmc.Session, p []byte) []byte {
	c := k.console
	if c == nil || c.sess != sess || len(p) < serialHead {
		return nil
	}
	if p[1] != 0 {
		select {
		case c.acks <- ack{p[1], p[2], p[3]&serialNack != 0}:
		default: // a double: one is waiting already
		}
	}
	if p[0] == 0 || len(p) == serialHead {
		return nil
	}
	if p[0] != c.typed {
		c.typed = p[0]
		k.o.Serial.press(p[serialHead:])
	}
	return k.sealed(protocol.PayloadSOL, []byte{0, p[0], byte(min(len(p)-serialHead, 255)), 0}, sess)
}

// transmit sends a packet to a console; one that is lost is sent again.
func (k *controller) transmit(c *console, p []byte) {
	if b := k.sealed(protocol.PayloadSOL, p, c.sess); b != nil {
		_, _ = k.pc.WriteTo(b, c.to)
	}
}
