// SPDX-License-Identifier: Apache-2.0

package power

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/gosnmp/gosnmp"
)

// The limits of an answer.
const (
	maxMessage     = 1472 // bytes of UDP in an Ethernet frame: a bulk answer is cut there
	maxRepetitions = 64
	maxVariables   = 64
)

// Options are the settings of a PDU's management card.
type Options struct {
	Community string // may read and write
	ReadOnly  string // may read; empty: there is none
}

// Serve answers SNMP v1 and v2c on pc until ctx ends, closes it, and returns nil then. A
// wrong community gets no answer, as does everybody while the PDU has no input.
func (p *PDU) Serve(ctx context.Context, pc net.PacketConn, o Options) error {
	defer pc.Close()
	stop := context.AfterFunc(ctx, func() { _ = pc.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	a := agent{pdu: p, options: o, tree: p.tree()}
	buf := make([]byte, 2048)
	for {
		n, from, err := pc.ReadFrom(buf)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("pdu %s: %w", p.spec.Name, err)
		case p.dead():
			continue
		}
		if answer := a.answer(append([]byte(nil), buf[:n]...)); answer != nil {
			_, _ = pc.WriteTo(answer, from) // the other side asks again
		}
	}
}

// agent is the SNMP agent of one PDU.
type agent struct {
	pdu     *PDU
	options Options
	tree    []column
	codec   gosnmp.GoSNMP
}

// answer is what a datagram is answered with; nil: nothing.
func (a *agent) answer(b []byte) []byte {
	q, err := a.decode(b)
	if err != nil || q.Version > gosnmp.Version2c || len(q.Variables) > maxVariables {
		return nil
	}
	writes := q.Community == a.options.Community
	if !writes && (a.options.ReadOnly == "" || q.Community != a.options.ReadOnly) {
		return nil
	}
	r := &gosnmp.SnmpPacket{Version: q.Version, Community: q.Community, PDUType: gosnmp.GetResponse, RequestID: q.RequestID}
	switch q.PDUType {
	case gosnmp.GetRequest:
		a.get(q, r)
	case gosnmp.GetNextRequest:
		a.next(q, r, 0, 1)
	case gosnmp.GetBulkRequest:
		a.next(q, r, int(q.NonRepeaters), min(int(q.MaxRepetitions), maxRepetitions))
	case gosnmp.SetRequest:
		a.set(q, r, writes)
	default:
		return nil
	}
	return marshalPacket(q, r)
}

// decode reads a request; the codec may panic on a malformed one.
func (a *agent) decode(b []byte) (p *gosnmp.SnmpPacket, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed: %v", r)
		}
	}()
	return a.codec.SnmpDecodePacket(b)
}

// marshalPacket encodes an answer, a bulk one cut to what fits (RFC 3416, 4.2.3).
func marshalPacket(q, r *gosnmp.SnmpPacket) []byte {
	for {
		b, err := r.MarshalMsg()
		switch {
		case err != nil:
			return nil
		case len(b) <= maxMessage:
			return b
		case q.PDUType == gosnmp.GetBulkRequest && len(r.Variables) > 1:
			r.Variables = r.Variables[:len(r.Variables)*3/4]
		case r.Error == gosnmp.TooBig:
			return nil
		default:
			r.Error, r.ErrorIndex, r.Variables = gosnmp.TooBig, 0, nil
		}
	}
}

func (c *column) variable(v *view, row int) gosnmp.SnmpPDU {
	return gosnmp.SnmpPDU{Name: c.at(row), Type: c.kind, Value: c.get(v, row)}
}

func (a *agent) get(q, r *gosnmp.SnmpPacket) {
	v := a.pdu.view()
	for i, x := range q.Variables {
		c, row, ok := findInstance(a.tree, v, parseOID(x.Name))
		switch {
		case ok:
			r.Variables = append(r.Variables, c.variable(v, row))
		case q.Version == gosnmp.Version1:
			r.Variables, r.Error, r.ErrorIndex = q.Variables, gosnmp.NoSuchName, uint8(i+1)
			return
		case c != nil:
			r.Variables = append(r.Variables, gosnmp.SnmpPDU{Name: x.Name, Type: gosnmp.NoSuchInstance})
		default:
			r.Variables = append(r.Variables, gosnmp.SnmpPDU{Name: x.Name, Type: gosnmp.NoSuchObject})
		}
	}
}

// next answers GetNext and GetBulk: the first variables once, the others
// repeatedly (RFC 3416, 4.2.3).
func (a *agent) next(q, r *gosnmp.SnmpPacket, once, repeat int) {
	v := a.pdu.view()
	names := make([]oid, len(q.Variables))
	for i, x := range q.Variables {
		names[i] = parseOID(x.Name)
	}
	once = min(once, len(names))
	for i := range once {
		a.step(v, q, r, names, i)
	}
	for range repeat {
		more := false
		for i := once; i < len(names) && r.Error == gosnmp.NoError; i++ {
			more = a.step(v, q, r, names, i) || more
		}
		if !more {
			return
		}
	}
}

// step adds the instance behind names[i], and puts its name there. It reports
// whether there was one.
func (a *agent) step(v *view, q, r *gosnmp.SnmpPacket, names []oid, i int) bool {
	c, row, ok := nextInstance(a.tree, v, names[i])
	switch {
	case ok:
		x := c.variable(v, row)
		r.Variables, names[i] = append(r.Variables, x), parseOID(x.Name)
	case q.Version == gosnmp.Version1:
		r.Variables, r.Error, r.ErrorIndex = q.Variables, gosnmp.NoSuchName, uint8(i+1)
	default:
		r.Variables = append(r.Variables, gosnmp.SnmpPDU{Name: writableName(names[i]), Type: gosnmp.EndOfMibView})
	}
	return ok
}

// writableName returns a name for an answer; one of fewer than two parts cannot be encoded.
func writableName(o oid) string {
	if len(o) < 2 {
		return ".0.0"
	}
	return formatOID(o)
}

// tree is that of the model that the site says.
func (p *PDU) tree() []column {
	if p.spec.Control == nil || p.spec.Control.Model == "" {
		return columnsOf("apc-rpdu2")
	}
	return columnsOf(p.spec.Control.Model)
}

// set switches outlets: all variables are checked before any is done.
func (a *agent) set(q, r *gosnmp.SnmpPacket, allowed bool) {
	r.Variables = q.Variables
	v := a.pdu.view()
	var acts []func()
	for i, x := range q.Variables {
		act, status := a.command(v, x, allowed)
		if status != gosnmp.NoError {
			if q.Version == gosnmp.Version1 {
				status = gosnmp.NoSuchName
			}
			r.Error, r.ErrorIndex = status, uint8(i+1)
			return
		}
		acts = append(acts, act)
	}
	for _, act := range acts {
		act()
	}
}

// command is what writing one variable does.
func (a *agent) command(v *view, x gosnmp.SnmpPDU, allowed bool) (func(), gosnmp.SNMPError) {
	c, row, ok := findInstance(a.tree, v, parseOID(x.Name))
	value, isInt := x.Value.(int)
	switch {
	case !allowed:
		return nil, gosnmp.NoAccess
	case !ok:
		return nil, gosnmp.NoCreation
	case c.set == nil:
		return nil, gosnmp.NotWritable
	case x.Type != gosnmp.Integer || !isInt:
		return nil, gosnmp.WrongType
	}
	act := c.set(a.pdu, row+1, value)
	if act == nil {
		return nil, gosnmp.WrongValue
	}
	return act, gosnmp.NoError
}

// setOutlet makes the set of a column of commands with these values.
func setOutlet(on, off, cycle int) func(p *PDU, outlet, value int) func() {
	return func(p *PDU, outlet, value int) func() {
		switch value {
		case on, off:
			return func() { _ = p.Switch(outlet, value == on) } // the row is there, so is the outlet
		case cycle:
			return func() { p.reboot(outlet) }
		}
		return nil
	}
}
