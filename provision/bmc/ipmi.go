// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"time"

	bmclibbmc "github.com/bmc-toolbox/bmclib/v2/bmc"
	"github.com/bmc-toolbox/bmclib/v2/providers"
	"github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/command/chassis"
	"github.com/bougou/go-ipmi/pkg/types"
	"github.com/jacobweinstock/registrar"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/provision/bmc/quirk"
)

// Limits and choices of IPMI 2.0 sessions.
const (
	maxUsername        = 16
	maxPassword        = 20
	defaultCipherSuite = 17
	// privilege is all that power and boot options need (IPMI 2.0, appendix G).
	// Many sites give automation no ADMINISTRATOR, and asking for more than a
	// user has is refused.
	privilege = types.PrivilegeLevelOperator
)

// The names of the driver in bmclib's registrar.
const (
	driverName     = "goipmi"
	driverProtocol = "ipmi"
)

// driverFeatures are what the driver claims in the registrar.
var driverFeatures = registrar.Features{
	providers.FeaturePowerState,
	providers.FeaturePowerSet,
	providers.FeatureBootDeviceSet,
}

// ipmiDriver is bmclib's driver for IPMI 2.0 on go-ipmi. It is not safe for
// concurrent use; Pool lets one request at a time through to a BMC.
//
// The session is opened message by message instead of by the library's Connect,
// which loses the types of errors, asks for cipher suites and starts a keep-alive
// goroutine that races with requests.
type ipmiDriver struct {
	target  Target
	network network.Network // nil: the operating system's
	clk     clock.Clock
	gap     time.Duration // shortest time between two requests to the BMC
	quirks  quirk.Set     // known after the first Get Device ID; sparing until then

	conn   *guard
	client *client.Client
	last   time.Time // end of the last exchange
	sent   int       // writes that left, over the driver's life
}

var (
	_ driver                             = (*ipmiDriver)(nil)
	_ bmclibbmc.BootDeviceOverrideGetter = (*ipmiDriver)(nil)
	_ registrar.Verifier                 = (*ipmiDriver)(nil)
)

// Name returns the driver's name for bmclib.
func (d *ipmiDriver) Name() string { return driverName }

// Compatible reports whether an IPMI session can be opened; it closes it again.
func (d *ipmiDriver) Compatible(ctx context.Context) bool {
	if d.client != nil {
		return true
	}
	if err := d.Open(ctx); err != nil {
		return false
	}
	return d.Close(ctx) == nil
}

// handshakes is how often the opening of a session is tried when messages get
// lost. A refused credential is never tried again.
const handshakes = 3

// Open opens a session. An open one is dropped first.
func (d *ipmiDriver) Open(ctx context.Context) error {
	d.drop()
	var err error
	for range handshakes {
		if err = d.handshake(ctx); err == nil || errkind.Of(err) != errkind.Timeout || ctx.Err() != nil {
			break
		}
	}
	if errors.Is(err, errUnheard) {
		return errkind.New(errkind.Unreachable, "%w", errUnheard).Do(errkind.Silent.Action("the BMC", "IPMI over LAN"))
	}
	return err
}

// handshake opens a session with one try for each message, every one with a
// third of the time-out, so that all of Open stays near one time-out for a BMC
// that does not answer at all.
func (d *ipmiDriver) handshake(ctx context.Context) error {
	conn, err := dialGuard(ctx, d.network, d.target)
	if err != nil {
		return classify(ctx, err)
	}
	addr := d.target.Addr
	c, err := client.NewClient(addr.Addr().String(), int(addr.Port()), d.target.Username, d.target.Password.Reveal())
	if err != nil {
		_ = conn.Close()
		return errkind.New(errkind.Invalid, "bmc user: %w", err)
	}
	c.WithUDPProxy(conn).WithRetry(0).WithTimeout(d.target.Timeout).
		WithCipherSuiteID(types.CipherSuiteID(d.target.CipherSuite)).WithMaxPrivilegeLevel(privilege)
	d.conn, d.client = conn, c
	for _, message := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := c.OpenSession(ctx); return err },
		func(ctx context.Context) error { _, err := c.RAKPMessage1(ctx); return err },
		func(ctx context.Context) error { _, err := c.RAKPMessage3(ctx); return err },
		func(ctx context.Context) error { _, err := c.SetSessionPrivilegeLevel(ctx, privilege); return err },
	} {
		if err := d.exchange(ctx, d.target.Timeout/handshakes, message); err != nil {
			silent := !conn.hasAnswer() && conn.drops() == 0
			d.drop()
			if refusal := conn.refusal(); refusal != nil {
				return refusal
			}
			if silent && errkind.Of(err) == errkind.Timeout {
				return errkind.New(errkind.Timeout, "%w", errUnheard)
			}
			return err
		}
	}
	return nil
}

// Close logs out, so that the BMC's few sessions are free for others, and drops
// the connection. A BMC that does not answer is no error: its session expires
// after 60 s (IPMI 2.0, 6.12.15).
func (d *ipmiDriver) Close(ctx context.Context) error {
	if d.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, min(d.target.Timeout, time.Second))
	defer cancel()
	_ = d.exchange(ctx, d.target.Timeout, d.client.Close)
	d.drop()
	return nil
}

// drop closes the connection without a word to the BMC.
func (d *ipmiDriver) drop() {
	if d.conn != nil {
		_ = d.conn.Close()
	}
	d.conn, d.client = nil, nil
}

// usable reports whether the session should still be alive.
func (d *ipmiDriver) usable(now time.Time) bool {
	return d.client != nil && now.Sub(d.last) < staleAfter
}

// pinged reports whether the session would expire without a question.
func (d *ipmiDriver) pinged(now time.Time) bool { return now.Sub(d.last) >= keepAliveEvery/2 }

// survives: after a lost answer nobody knows whether the BMC still has the
// session, and an interruption can leave half an exchange behind.
func (d *ipmiDriver) survives(err error) bool {
	k := errkind.Of(err)
	return !isLost(err) && k != errkind.Interrupted && k != errkind.Internal && !errors.Is(err, errCredential)
}

func (d *ipmiDriver) used() (time.Time, int) { return d.last, d.sent }

// certificate: IPMI has none.
func (d *ipmiDriver) certificate() string { return "" }

// ping asks the cheapest question, which also keeps the session from expiring.
func (d *ipmiDriver) ping(ctx context.Context) error { return d.deviceID(ctx, &Identity{}) }

func (d *ipmiDriver) powerHabits() powerQuirks { return powerQuirks{dwell: d.quirks.Dwell()} }

// exchange runs one request with a deadline of its own and the gap before it.
func (d *ipmiDriver) exchange(ctx context.Context, wait time.Duration, request func(context.Context) error) (err error) {
	if pause := d.gap - d.clk.Now().Sub(d.last); pause > 0 && !d.last.IsZero() {
		if err := d.clk.Sleep(ctx, pause); err != nil {
			return classify(ctx, err)
		}
	}
	conn := d.conn
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	// The library leaves its reader behind when ctx ends early; wake it up.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	defer func() {
		d.last = d.clk.Now()
		if p := recover(); p != nil { // the library's parsers trust the BMC's lengths
			err = errkind.New(errkind.Internal, "malformed answer: %v", p)
		}
	}()
	before := conn.drops()
	err = classify(ctx, request(ctx))
	if n := conn.drops() - before; n > 0 && errkind.Of(err) == errkind.Timeout && err != nil {
		err = errkind.New(errkind.Timeout, "%w; %d datagrams that do not belong to the session were dropped", err, n)
	}
	return err
}

// read asks for something and repeats the question when an answer got lost: it
// changes nothing. All tries together take one time-out.
func (d *ipmiDriver) read(ctx context.Context, request func(context.Context) error) error {
	if d.client == nil {
		return errkind.New(errkind.Unreachable, "the session is closed")
	}
	var err error
	for _, part := range []time.Duration{4, 4, 2} {
		err = d.exchange(ctx, d.target.Timeout/part, request)
		if err == nil || errkind.Of(err) != errkind.Timeout || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// write sends a command that changes something, once. A lost answer is a
// Timeout: what became of the command must then be read back.
func (d *ipmiDriver) write(ctx context.Context, request func(context.Context) error) error {
	if d.client == nil {
		return errkind.New(errkind.Unreachable, "the session is closed")
	}
	if err := ctx.Err(); err != nil {
		return classify(ctx, err)
	}
	d.sent++
	return d.exchange(ctx, d.target.Timeout, request)
}

// PowerStateGet returns "on" or "off" (IPMI 2.0, 28.2).
func (d *ipmiDriver) PowerStateGet(ctx context.Context) (state string, err error) {
	err = d.read(ctx, func(ctx context.Context) error {
		r, err := d.client.GetChassisStatus(ctx)
		if err != nil {
			return err
		}
		state = string(Off.state())
		if r.PowerIsOn {
			state = string(On.state())
		}
		return nil
	})
	return state, err
}

// controls maps bmclib's words to Chassis Control (IPMI 2.0, table 28-3).
// "cycle" is missing on purpose: see Session.cycle.
var controls = map[string]chassis.ChassisControl{
	"on":    chassis.ChassisControlPowerUp,
	"off":   chassis.ChassisControlPowerDown,
	"reset": chassis.ChassisControlHardReset,
	"soft":  chassis.ChassisControlSoftShutdown,
}

// PowerSet sends one Chassis Control command.
func (d *ipmiDriver) PowerSet(ctx context.Context, state string) (bool, error) {
	control, ok := controls[state]
	if !ok {
		return false, errkind.New(errkind.Unsupported, "power action %q is not one command of the driver", state)
	}
	err := d.write(ctx, func(ctx context.Context) error {
		_, err := d.client.ChassisControl(ctx, control)
		return err
	})
	return err == nil, err
}

// errUnheard is the cause of a time-out at a BMC that never answered.
var errUnheard = errors.New("nothing answers")
