// SPDX-License-Identifier: Apache-2.0

package pdu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gosnmp/gosnmp"

	"github.com/ironrail/ironrail/internal/errkind"
)

// The limits of what a PDU may answer.
const (
	maxRows     = 4096 // of a column: a PDU with more is not believed
	repetitions = 24   // rows asked for at once; fits into 1,500 bytes
	maxDatagram = 8192 // bytes; what is longer does not decode
)

// session is a conversation with one PDU over one UDP socket. Only the codec is
// gosnmp's: its own client cannot be given a socket, and does not report an expired
// deadline from other errors but by text.
type session struct {
	unit  *Unit
	ctx   context.Context
	conn  net.Conn
	codec gosnmp.GoSNMP
	buf   []byte
	next  uint32 // request id
}

// session opens a socket for what do asks.
func (u *Unit) session(ctx context.Context, do func(*session) error) error {
	conn, err := u.target.Network.Dial(ctx, "udp", u.target.Addr.String())
	if err != nil {
		return errkind.New(errkind.Unreachable, "%w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	return do(&session{
		unit: u, ctx: ctx, conn: conn, buf: make([]byte, maxDatagram), next: rand.Uint32N(1 << 30),
		codec: gosnmp.GoSNMP{Version: gosnmp.Version2c, Community: u.target.Community.Reveal()},
	})
}

// get reads one object. A nil value is one that the PDU has not.
func (s *session) get(oid string) (any, error) {
	answer, err := s.exchange(s.codec.MkSnmpPacket(gosnmp.GetRequest, []gosnmp.SnmpPDU{{Name: oid, Type: gosnmp.Null}}, 0, 0))
	if err != nil {
		return nil, err
	}
	if len(answer.Variables) != 1 || strings.TrimPrefix(answer.Variables[0].Name, ".") != oid {
		return nil, errkind.New(errkind.Internal, "the PDU answered another question than %s", oid)
	}
	return answer.Variables[0].Value, nil
}

// set writes one integer.
func (s *session) set(oid string, value int) error {
	_, err := s.exchange(s.codec.MkSnmpPacket(gosnmp.SetRequest, []gosnmp.SnmpPDU{{Name: oid, Type: gosnmp.Integer, Value: value}}, 0, 0))
	return err
}

// walk reads a column, by row number. A column that the PDU has not is empty.
func (s *session) walk(c column) (map[int]any, error) {
	rows := map[int]any{}
	if c.oid == "" {
		return rows, nil
	}
	at, under := c.oid, c.oid+"."
	for len(rows) < maxRows {
		answer, err := s.exchange(s.codec.MkSnmpPacket(gosnmp.GetBulkRequest, []gosnmp.SnmpPDU{{Name: at, Type: gosnmp.Null}}, 0, repetitions))
		if err != nil {
			return nil, err
		}
		for _, v := range answer.Variables {
			name := strings.TrimPrefix(v.Name, ".")
			if !strings.HasPrefix(name, under) || v.Type == gosnmp.EndOfMibView {
				return rows, nil
			}
			if !isNext(at, name) {
				return nil, errkind.New(errkind.Internal, "the PDU's agent goes in circles at %s", name)
			}
			at = name
			if n, ok := c.number(name[len(under):]); ok {
				rows[n] = v.Value
			}
		}
	}
	return nil, errkind.New(errkind.Internal, "column %s has more than %d rows", c.oid, maxRows)
}

// number reads the row's number out of an index.
func (c column) number(index string) (int, bool) {
	index, ok := strings.CutPrefix(index, c.prefix)
	if ok && c.suffix != "" {
		index, ok = strings.CutSuffix(index, "."+c.suffix)
	}
	n, err := strconv.Atoi(index)
	return n, ok && err == nil && n > 0
}

// isNext reports whether object b comes after a in the order of an agent.
func isNext(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, _ := strconv.ParseUint(as[i], 10, 32)
		y, _ := strconv.ParseUint(bs[i], 10, 32)
		if x != y {
			return x < y
		}
	}
	return len(as) < len(bs)
}

// exchange sends a request until it is answered. Setting an integer twice is
// harmless, so all requests are repeated.
func (s *session) exchange(p *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, error) {
	first := s.next
	for range s.unit.target.Tries {
		p.RequestID = s.next
		s.next++
		b, err := p.MarshalMsg()
		if err != nil {
			return nil, errkind.New(errkind.Internal, "%w", err)
		}
		answer, err := s.try(b, first)
		switch {
		case s.ctx.Err() != nil:
			return nil, context.Cause(s.ctx)
		case err == nil:
			return answer, statusError(answer)
		case errors.Is(err, syscall.ECONNREFUSED):
			return nil, errkind.New(errkind.Unreachable, "%w", err).Do("Nothing listens for SNMP there: check the address and that SNMP is enabled on the PDU.")
		}
	}
	return nil, errkind.New(errkind.Unreachable, "no answer to SNMP from %s in %d tries of %s", s.unit.target.Addr, s.unit.target.Tries, s.unit.target.Timeout).
		Do("Check the address, that SNMP v2c is enabled, and the community: a PDU does not answer a wrong one.")
}

// try sends once and waits for the answer to this or an earlier try.
func (s *session) try(request []byte, first uint32) (*gosnmp.SnmpPacket, error) {
	if err := s.conn.SetDeadline(time.Now().Add(s.unit.target.Timeout)); err != nil {
		return nil, err
	}
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx) // after the deadline that its end has set
	}
	if _, err := s.conn.Write(request); err != nil {
		return nil, err
	}
	for {
		n, err := s.conn.Read(s.buf)
		if err != nil {
			return nil, err
		}
		answer, err := decodePacket(&s.codec, append([]byte(nil), s.buf[:n]...))
		if err == nil && answer.PDUType == gosnmp.GetResponse && answer.RequestID >= first && answer.RequestID < s.next {
			return answer, nil
		}
	}
}

// decodePacket reads a datagram from outside; the codec may panic on a bad one.
func decodePacket(codec *gosnmp.GoSNMP, b []byte) (p *gosnmp.SnmpPacket, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("malformed answer: %v", r)
		}
	}()
	return codec.SnmpDecodePacket(b)
}

// statusError turns the error status of an answer into an error.
func statusError(p *gosnmp.SnmpPacket) error {
	switch p.Error {
	case gosnmp.NoError:
		return nil
	case gosnmp.NoAccess, gosnmp.ReadOnly, gosnmp.NotWritable, gosnmp.AuthorizationError:
		return errkind.New(errkind.Refused, "the PDU refuses to write: %s", p.Error).Do("Give a community that may write, or allow it in the PDU's SNMP settings.")
	case gosnmp.NoSuchName, gosnmp.NoCreation, gosnmp.InconsistentName:
		return errkind.New(errkind.Unsupported, "the PDU has no such object: %s", p.Error)
	}
	return errkind.New(errkind.Internal, "the PDU answers %s", p.Error)
}

// toInteger reads a value of one of the integer types.
func toInteger(v any) (int, bool) {
	switch n := v.(type) {
	case int:
		return n, true
	case uint:
		return int(n), n < 1<<62
	case uint32:
		return int(n), true
	case uint64:
		return int(n), n < 1<<62
	}
	return 0, false
}
