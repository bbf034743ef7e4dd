// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Times of serial over LAN.
const (
	serialKeepAlive   = 20 * time.Second // a BMC ends a silent session after 60 s
	serialLost        = 50 * time.Second // silence of a BMC that was asked twice
	deactivateTimeout = time.Second      // for the answer to Deactivate Payload
	serialRetryMost   = 30 * time.Second
	serialYield       = 30 * time.Second // for whoever ended the session, to open it themselves
)

// errEnded says that the BMC ended the console: somebody asked it to, who wants it, or it starts again.
var errEnded = errkind.New(errkind.Timeout, "the BMC ended the console")

// Terminal copies what a node prints on its serial console to w, as the BMC sends
// it over LAN (IPMI 2.0, sections 15 and 24), until ctx ends, and types what comes from keys, in order
// and one text at a time; nil: it never sends a character. It opens a session of its own besides those of a
// Pool, most BMCs have four, and gives payload and session back at its end. A lost BMC is called again,
// with up to 30 s between two tries; what was printed meanwhile is not seen, since
// BMCs keep nothing, and keys that a BMC took just before it was lost may not have reached the node. A
// console that somebody else has open is left to them: the error is of kind Refused. Whoever has the BMC end
// this session has 30 s to open the console themselves.
//
// up is called each time that the console is open; nil: nobody.
// The end of ctx is no error. An error of w ends the copy and is returned.
func Terminal(ctx context.Context, t Target, o Options, w io.Writer, keys <-chan string, up func()) error {
	t = t.withDefaults()
	if err := t.check(); err != nil {
		return t.wrap("read the console", err)
	}
	if t.Protocol == Redfish {
		return t.wrap("read the console", errkind.New(errkind.Unsupported, "Redfish has no console that can be read over HTTP").
			Do("Read it at the BMC's own page, or by SSH where the BMC or a console server has it: give the node a console block."))
	}
	if o.Clock == nil {
		o.Clock = clock.Wall{}
	}
	wait := time.Second
	for {
		opened, err := consoleOnce(ctx, t, o, w, keys, up)
		if ctx.Err() != nil {
			return nil
		}
		if k := errkind.Of(err); k != errkind.Timeout && (k != errkind.Unreachable || !opened && wait == time.Second) {
			return t.wrap("read the console", err)
		}
		switch {
		case errors.Is(err, errEnded):
			wait = serialYield
		case opened:
			wait = time.Second
		}
		if o.Clock.Sleep(ctx, wait) != nil {
			return nil
		}
		wait = min(2*wait, serialRetryMost)
	}
}

// consoleOnce reads the console over one session. It reports whether the console
// was open.
func consoleOnce(ctx context.Context, t Target, o Options, w io.Writer, keys <-chan string, up func()) (bool, error) {
	d := &ipmiDriver{target: t, network: o.Network, clk: o.Clock, gap: o.Gap}
	if err := d.Open(ctx); err != nil {
		return false, err
	}
	defer d.drop()
	if err := d.activate(ctx); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = d.Close(ctx)
		return false, err
	}
	s := newSerial(d.conn, keys)
	defer s.deactivate()
	if up != nil {
		up()
	}
	return true, s.copyTo(ctx, w)
}

// Commands and data of payloads (IPMI 2.0, tables 24-2, 24-3 and 24-4).
const (
	netFnApp          = 0x06
	cmdDeviceID       = 0x01
	cmdCloseSession   = 0x3c
	cmdActivate       = 0x48
	cmdDeactivate     = 0x49
	payloadSerial     = 0x01
	serialProtected   = 0xc0 // encrypted, authenticated
	serialAlertsLater = 0x04 // alerts over the serial port wait
	standardPort      = 623
)

// refusals are the completion codes of Activate Payload (IPMI 2.0, table 24-2).
var refusals = map[types.CompletionCode]*errkind.Error{
	0x80: errkind.New(errkind.Refused, "somebody else has the console open").Do("Wait until they are done, or have the BMC end their session (ipmitool sol deactivate)."),
	0x81: errkind.New(errkind.Unsupported, "serial over LAN is switched off in the BMC").Do("Enable serial over LAN in the BMC's settings, for this user as well."),
	0x82: errkind.New(errkind.Refused, "the BMC has as many consoles open as it can").Do("Close another one."),
	0x83: errkind.New(errkind.Unsupported, "the BMC does not encrypt serial over LAN").Do("Read the console at the BMC; ironrail does not read it in the clear."),
}

// activate asks the BMC to send the console over this session.
func (d *ipmiDriver) activate(ctx context.Context) error {
	var answer []byte
	err := d.write(ctx, func(ctx context.Context) error {
		r, err := d.client.RawCommand(ctx, netFnApp, cmdActivate,
			[]byte{payloadSerial, 1, serialProtected | serialAlertsLater, 0, 0, 0}, "Activate Payload")
		if r != nil {
			answer = r.Response
		}
		return activation(err)
	})
	if err != nil {
		return err
	}
	if len(answer) < 10 {
		return errkind.New(errkind.Internal, "malformed answer: Activate Payload has %d bytes, not 12", len(answer))
	}
	if port := int(answer[8]) | int(answer[9])<<8; port != standardPort && port != int(d.target.Addr.Port()) {
		return errkind.New(errkind.Unsupported, "the BMC sends its console from another port, %d", port).Do("Set the port of serial over LAN to 623 in the BMC.")
	}
	d.conn.mu.Lock()
	d.conn.serial = true
	d.conn.mu.Unlock()
	return nil
}

// activation makes words of a refusal of Activate Payload.
func activation(err error) error {
	if r, ok := errors.AsType[*types.ResponseError](err); ok {
		if e := refusals[r.CompletionCode()]; e != nil {
			return e
		}
	}
	return err
}

// fresh returns the characters of a packet that were not seen before: a BMC that
// missed an acknowledgement sends them again under the same number, maybe with
// more behind them (IPMI 2.0, 15.11).
func (s *serial) fresh(number byte, text []byte) []byte {
	if number != s.number {
		s.number, s.count = number, 0
	}
	out := text[min(s.count, len(text)):]
	s.count = max(s.count, len(text))
	return slices.Clone(out)
}
