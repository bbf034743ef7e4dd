// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	bmclibbmc "github.com/bmc-toolbox/bmclib/v2/bmc"
	"github.com/bmc-toolbox/bmclib/v2/providers/rpc"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/provision/bmc/quirk"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// rpcDriver is bmclib's provider rpc behind a guard: the way to nodes whose power a
// service of the site's own switches. It can read and change power and ask for a
// boot device; the protocol has no words for more.
//
// The provider signs requests with HMAC-SHA256; what authenticates answers is TLS
// alone. It is not safe for concurrent use.
type rpcDriver struct {
	*rpc.Provider
	wires *http.Transport
	shown func() string // the certificate that was trusted last
	clk   clock.Clock
	gap   time.Duration
	open  bool
	last  time.Time // end of the last exchange
	sent  int       // writes that left, over the driver's life
}

var _ driver = (*rpcDriver)(nil)

// newRPC makes the driver; nothing is sent.
func newRPC(t Target, o Options) (*rpcDriver, error) {
	at, err := t.service()
	if err != nil {
		return nil, err
	}
	wires, shown, err := redfish.HTTPS(redfish.Config{Addr: at, TLS: t.TLS, Pinned: t.Pinned, Timeout: t.Timeout, Network: network.Or(o.Network)})
	if err != nil {
		return nil, err
	}
	p := rpc.New(t.Endpoint, t.Addr.Addr().String(), rpc.Secrets{rpc.SHA256: {t.Password.Reveal()}})
	p.HTTPClient = &http.Client{Transport: rpcGuard{next: wires, timeout: t.Timeout}}
	return &rpcDriver{Provider: p, wires: wires, shown: shown, clk: o.Clock, gap: o.Gap}, nil
}

// service returns where the service of an RPC target listens.
func (t Target) service() (netip.AddrPort, error) {
	u, err := url.Parse(t.Endpoint)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return netip.AddrPort{}, errkind.New(errkind.Invalid, "the endpoint is no https URL").Do(`Set endpoint = "https://ADDRESS:PORT/PATH" in the bmc block.`)
	}
	host := u.Host
	if u.Port() == "" {
		host += ":443"
	}
	at, err := netip.ParseAddrPort(host)
	switch {
	case err != nil || at.Port() == 0:
		return at, errkind.New(errkind.Invalid, "the endpoint names no IP address").Do("Give the address of the service instead of its name.")
	case t.Password.Reveal() == "":
		return at, errkind.New(errkind.Invalid, "requests to the service cannot be signed without a password").Do("Set password in the bmc block to the secret that the service knows.")
	}
	return at, nil
}

// exchange runs one request after the gap.
func (d *rpcDriver) exchange(ctx context.Context, request func() error) error {
	if pause := d.gap - d.clk.Now().Sub(d.last); pause > 0 && !d.last.IsZero() {
		if err := d.clk.Sleep(ctx, pause); err != nil {
			return classify(ctx, err)
		}
	}
	defer func() { d.last = d.clk.Now() }()
	return plain(request())
}

// Open makes sure that the service answers and takes our signature.
func (d *rpcDriver) Open(ctx context.Context) error {
	err := d.exchange(ctx, func() error { return d.Provider.Open(ctx) })
	d.open = err == nil
	return err
}

// Close closes the connection: the service keeps no session.
func (d *rpcDriver) Close(context.Context) error {
	d.drop()
	return nil
}

func (d *rpcDriver) drop() {
	d.open = false
	d.wires.CloseIdleConnections()
}

func (d *rpcDriver) usable(now time.Time) bool { return d.open && now.Sub(d.last) < redfishStale }

// pinged: there is no session that could expire.
func (d *rpcDriver) pinged(time.Time) bool { return false }

func (d *rpcDriver) survives(err error) bool {
	k := errkind.Of(err).Base()
	return k != errkind.Auth && k != errkind.Mismatch
}

func (d *rpcDriver) used() (time.Time, int) { return d.last, d.sent }

func (d *rpcDriver) certificate() string { return d.shown() }

func (d *rpcDriver) ping(ctx context.Context) error {
	_, err := d.PowerStateGet(ctx)
	return err
}

// PowerStateGet returns "on", "off", or "" for what is neither.
func (d *rpcDriver) PowerStateGet(ctx context.Context) (state string, err error) {
	err = d.exchange(ctx, func() error { state, err = d.Provider.PowerStateGet(ctx); return err })
	switch state = strings.ToLower(state); {
	case err != nil || state != string(PowerOn) && state != string(PowerOff):
		return string(PowerUnknown), err
	}
	return state, nil
}

// PowerSet sends one power command, once. "cycle" is missing on purpose: see
// Session.cycle.
func (d *rpcDriver) PowerSet(ctx context.Context, state string) (bool, error) {
	if _, ok := controls[state]; !ok {
		return false, errkind.New(errkind.Unsupported, "power action %q is not one command of the driver", state)
	}
	d.sent++
	err := d.exchange(ctx, func() error { _, err := d.Provider.PowerSet(ctx, state); return err })
	return err == nil, err
}

// BootDeviceSet asks for a boot device, once.
func (d *rpcDriver) BootDeviceSet(ctx context.Context, device string, persistent, efi bool) (bool, error) {
	d.sent++
	err := d.exchange(ctx, func() error { _, err := d.Provider.BootDeviceSet(ctx, device, persistent, efi); return err })
	return err == nil, err
}

// identity: the service is asked for the node's power, so that one that does not
// know the BMC says so here; who the node is it cannot tell.
func (d *rpcDriver) identity(ctx context.Context) (Identity, error) {
	return Identity{Gaps: []string{"identity: rpc has no way to ask for it"}}, d.ping(ctx)
}

// canBoot: what the service knows is in its answers.
func (d *rpcDriver) canBoot(b Boot) error {
	if b.Device > Setup {
		return errkind.New(errkind.Internal, "%s is no boot device", b.Device)
	}
	return nil
}

// bootKept: the protocol cannot read a boot device back.
func (d *rpcDriver) bootKept(context.Context, Boot) (Outcome, error) {
	return Outcome{Verdict: Unverifiable, Evidence: "the service accepted the boot device, and rpc has no way to read it back"}, nil
}

func (d *rpcDriver) powerHabits() powerQuirks { return powerQuirks{dwell: quirk.Set(0).Dwell()} }

var _ bmclibbmc.BootDeviceSetter = (*rpcDriver)(nil)
