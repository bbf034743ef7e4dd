// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"

	"github.com/bougou/go-ipmi/pkg/crypto"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/errkind"
)

// serial is a session that carries a console. From its begin on the library is
// out of the way: it takes each datagram for the answer to a question. It is used
// by one goroutine.
type serial struct {
	conn     *guard
	sequence uint32 // of the last datagram sent
	question byte   // number of the last IPMI request
	number   byte   // of the last packet with characters
	count    int    // characters of it that were taken

	keys    <-chan string // to be typed; nil: nothing is
	typing  typed
	typedAt time.Time // when a key came last
}

// newSerial takes a session over.
func newSerial(g *guard, keys <-chan string) *serial {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &serial{conn: g, sequence: g.sequence, keys: keys}
}

// Bits of the status of a serial packet (IPMI 2.0, table 15-2).
const (
	serialAck         = 4 // bytes before the characters
	serialNack        = 0x40
	serialDeactivated = 0x10
)

// copyTo copies characters to w until ctx or the console ends.
func (s *serial) copyTo(ctx context.Context, w io.Writer) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	b := make([]byte, maxDatagram)
	heard, asked := time.Now(), time.Now()
	for {
		now := time.Now()
		if now.Sub(heard) > serialLost {
			return errkind.New(errkind.Timeout, "the BMC is silent")
		}
		if now.Sub(asked) >= serialKeepAlive {
			asked = now
			if err := s.sendRequest(cmdDeviceID); err != nil {
				return classify(ctx, err)
			}
		}
		if err := s.typeKeys(now); err != nil {
			return classify(ctx, err)
		}
		_ = s.conn.SetReadDeadline(s.nextLook(now, asked))
		if ctx.Err() != nil { // the deadline of its end may just have been overwritten
			return nil
		}
		kind, p, err := s.receive(b)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case err != nil:
			return classify(ctx, err)
		}
		heard = time.Now()
		if kind != types.PayloadTypeSOL {
			continue
		}
		if ended, err := s.packet(p, w); ended || err != nil {
			return err
		}
	}
}

// packet takes one packet: its characters to w, and the acknowledgement back.
func (s *serial) packet(p []byte, w io.Writer) (ended bool, err error) {
	if len(p) < serialAck {
		return false, nil
	}
	s.typing.acknowledge(p)
	if number := p[0] & 0x0f; number != 0 && len(p) > serialAck {
		text := p[serialAck:]
		if _, err := w.Write(s.fresh(number, text)); err != nil {
			return true, err
		}
		if err := s.send(types.PayloadTypeSOL, []byte{0, number, byte(min(len(text), 255)), 0}); err != nil {
			return true, errkind.New(errkind.Timeout, "acknowledge: %w", err)
		}
	}
	if p[3]&serialDeactivated != 0 {
		return true, errEnded
	}
	return false, nil
}

// receive returns kind and content of the next good datagram.
func (s *serial) receive(b []byte) (types.PayloadType, []byte, error) {
	n, err := s.conn.Read(b)
	if err != nil {
		return 0, nil, err
	}
	sealed, _ := sessionPayload(b[:n])
	s.conn.mu.Lock()
	k2 := s.conn.k2
	s.conn.mu.Unlock()
	p, err := crypto.DecryptAESPayload(sealed, k2)
	if err != nil {
		return types.PayloadTypeOEM, nil, nil //nolint:nilerr // the guard lets through what is whole; the handshake's late doubles are not
	}
	return types.PayloadType(b[rmcpHeader+1] & 0x3f), p, nil
}

// sendRequest sends an IPMI request (IPMI 2.0, 13.8). Nobody waits for its answer.
func (s *serial) sendRequest(command byte, data ...byte) error {
	s.question++
	head := []byte{0x20, netFnApp << 2}
	body := append([]byte{0x81, s.question << 2, command}, data...)
	m := append(append(head, twos(head)), body...)
	return s.send(types.PayloadTypeIPMI, append(m, twos(body)))
}

// twos is the checksum of IPMI: it makes the bytes sum up to zero.
func twos(b []byte) (sum byte) {
	for _, v := range b {
		sum -= v
	}
	return sum
}

// send sends one payload, encrypted and authenticated (IPMI 2.0, 13.6 and 13.28).
func (s *serial) send(kind types.PayloadType, plain []byte) error {
	g := s.conn
	g.mu.Lock()
	k1, k2, id := g.k1, g.k2, g.bmcID
	g.mu.Unlock()
	_, integrity, _, _ := types.GetCipherSuiteAlgorithms(g.suite)
	sealed, err := crypto.EncryptAESPayload(plain, k2, crypto.RandomBytes(16))
	if err != nil {
		return err
	}
	s.sequence++
	b := []byte{6, 0, 0xff, rmcpClassIPMI, byte(types.AuthTypeRMCPPlus), byte(kind) | 0xc0}
	b = binary.LittleEndian.AppendUint32(b, id)
	b = binary.LittleEndian.AppendUint32(b, s.sequence)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(sealed)))
	b = append(b, sealed...)
	pads := byte(0)
	for (len(b)-rmcpHeader+2)%4 != 0 {
		b = append(b, 0xff)
		pads++
	}
	b = append(b, pads, 0x07)
	code, err := crypto.SessionIntegrityAuthCode(integrity, b[rmcpHeader:], k1, "")
	if err != nil {
		return err
	}
	_, err = g.Write(append(b, code...))
	return err
}

// deactivate gives console and session back. A BMC that does not answer ends both
// by itself after a minute.
func (s *serial) deactivate() {
	if s.sendRequest(cmdDeactivate, payloadSerial, 1, 0, 0, 0, 0) != nil {
		return
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(deactivateTimeout))
	b := make([]byte, maxDatagram)
	for {
		kind, p, err := s.receive(b)
		if err != nil || kind == types.PayloadTypeIPMI && len(p) > 5 && p[5] == cmdDeactivate {
			break
		}
	}
	s.conn.mu.Lock()
	id := s.conn.bmcID
	s.conn.mu.Unlock()
	_ = s.sendRequest(cmdCloseSession, binary.LittleEndian.AppendUint32(nil, id)...)
}
