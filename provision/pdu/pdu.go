// SPDX-License-Identifier: Apache-2.0

// Package pdu speaks with power distribution units by SNMP v2c: it switches
// outlets and reads loads and breakers. What a vendor's MIB calls things is data
// (mib.go). It also explains why several nodes lost power together. It knows
// neither the inventory nor the plan.
package pdu

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
)

// How long a PDU may take. Their management cards are slow: 1 s for a request of
// many objects is common, and a relay needs up to 3 s to follow.
const (
	defaultTimeout = 2 * time.Second
	defaultTries   = 3
	followTries    = 10
	followEvery    = time.Second
)

// State is what an outlet's relay does.
type State string

// The states. Unknown is that of an outlet that cannot be switched.
const (
	Unknown State = "unknown"
	On      State = "on"
	Off     State = "off"
)

// Outlets switches outlets, which are numbered from 1 as on the case.
type Outlets interface {
	Outlet(ctx context.Context, number int) (State, error)
	Switch(ctx context.Context, number int, to State) error
}

// Meter reads what flows.
type Meter interface {
	Read(ctx context.Context) (Reading, error)
}

// Target is a PDU and how it is reached.
type Target struct {
	Name      string         // such as r01/a, for messages
	Addr      netip.AddrPort // port 0: 161
	Model     string         // one of Models
	Community secret.Value   // of SNMP v2c; to switch, one that may write
	Network   network.Network
	Timeout   time.Duration // of one try; 0: 2 s
	Tries     int           // 0: 3
	Clock     clock.Clock   // of waits for a relay; nil: clock.Wall
}

// Unit is one PDU. It keeps no connection and may be used by several goroutines.
type Unit struct {
	target Target
	mib    *mib
}

// Open checks a target. It does not speak with the PDU. A model that is not
// known is errkind.Unsupported.
func Open(t Target) (*Unit, error) {
	m := findMIB(t.Model)
	if m == nil {
		return nil, errkind.New(errkind.Unsupported, "pdu %s: model %q is not known", t.Name, t.Model).
			Do(fmt.Sprintf("Set model to one of %q.", Models()))
	}
	if n := len(t.Community.Reveal()); n == 0 || n > 127 {
		return nil, errkind.New(errkind.Auth, "pdu %s: the SNMP community has %d bytes; 1 to 127 are possible", t.Name, n).
			Do("Give the control block a community.")
	}
	if t.Addr.Port() == 0 {
		t.Addr = netip.AddrPortFrom(t.Addr.Addr(), 161)
	}
	if t.Network == nil {
		t.Network = network.OS{}
	}
	if t.Clock == nil {
		t.Clock = clock.Wall{}
	}
	if t.Timeout <= 0 {
		t.Timeout = defaultTimeout
	}
	if t.Tries <= 0 {
		t.Tries = defaultTries
	}
	return &Unit{t, m}, nil
}

// Outlet returns the state of one outlet. Errors: errkind.Unreachable when nobody
// answers (also to a wrong community), Unsupported for an outlet that is not
// there.
func (u *Unit) Outlet(ctx context.Context, number int) (state State, err error) {
	err = u.session(ctx, func(s *session) error {
		state, err = u.state(s, number)
		return err
	})
	return state, u.wrap(fmt.Sprintf("outlet %d", number), err)
}

func (u *Unit) state(s *session, number int) (State, error) {
	v, err := s.get(u.mib.state.row(number))
	if err != nil {
		return Unknown, err
	}
	n, ok := toInteger(v)
	if !ok {
		return Unknown, errkind.New(errkind.Unsupported, "there is no such outlet that can be switched")
	}
	return u.mib.stateOf(n), nil
}

// Switch turns an outlet on or off, and returns when the PDU says that it is so.
// One that is so already is left alone. An outlet that does not follow within
// 10 s is errkind.Mismatch; a community that may only read is Refused.
func (u *Unit) Switch(ctx context.Context, number int, to State) error {
	what := fmt.Sprintf("switch outlet %d %s", number, to)
	command, ok := u.mib.commands[to]
	if !ok {
		return u.wrap(what, errkind.New(errkind.Unsupported, "outlets are switched on or off"))
	}
	return u.wrap(what, u.session(ctx, func(s *session) error {
		if now, err := u.state(s, number); err != nil || now == to {
			return err
		}
		if err := s.set(u.mib.command.row(number), command); err != nil {
			return err
		}
		return u.follow(ctx, s, number, to)
	}))
}

// follow waits for the relay.
func (u *Unit) follow(ctx context.Context, s *session, number int, to State) error {
	var now State
	for range followTries {
		var err error
		if now, err = u.state(s, number); err != nil || now == to {
			return err
		}
		if err := u.target.Clock.Sleep(ctx, followEvery); err != nil {
			return err
		}
	}
	return errkind.New(errkind.Mismatch, "the PDU took the command, and the outlet is %s still after %s", now, followTries*followEvery).
		Do("Look at the outlet's relay and at a power-on delay in the PDU's settings.")
}

// wrap says whom an error is about.
func (u *Unit) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pdu %s: %s: %w", u.target.Name, what, err)
}
