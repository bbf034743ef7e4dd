// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"time"

	"github.com/jacobweinstock/registrar"

	bmclibbmc "github.com/bmc-toolbox/bmclib/v2/bmc"
	"github.com/bmc-toolbox/bmclib/v2/providers/rpc"
)

// driver is one protocol's way to one BMC: what bmclib's registrar calls, and
// what a Session needs beside it. Drivers are not safe for concurrent use. What a
// driver can do beyond this it has as methods of the capability interfaces (see
// Use).
type driver interface {
	library
	connection
	observer
}

// library is what a driver does through bmclib.
type library interface {
	bmclibbmc.Provider
	bmclibbmc.Opener
	bmclibbmc.Closer
	bmclibbmc.PowerStateGetter
	bmclibbmc.PowerSetter
	bmclibbmc.BootDeviceSetter
}

// connection is the life of a driver's session.
type connection interface {
	drop()                      // forgets the session without a word to the BMC
	usable(now time.Time) bool  // there is a session, and it has not expired as far as is known
	pinged(now time.Time) bool  // the session is to be asked something now, so that it does not expire
	survives(err error) bool    // the session can be used after this error
	used() (time.Time, int)     // end of the last exchange; commands that changed something, over the driver's life
	certificate() string        // SHA-256 of the BMC's certificate in hex; "": none seen, or the protocol has none
	ping(context.Context) error // the cheapest question; it also settles the quirks
}

// observer is what a driver observes.
type observer interface {
	identity(context.Context) (Identity, error)
	// canBoot refuses a boot device that this BMC cannot set; nothing is sent.
	canBoot(Boot) error
	// bootKept reads the boot device back and compares it with b.
	bootKept(ctx context.Context, b Boot) (Outcome, error)
	// powerHabits is how this BMC wants to be powered.
	powerHabits() powerQuirks
}

// powerQuirks is how a kind of BMC wants to be powered.
type powerQuirks struct {
	dwell   time.Duration // how long a node stays off in a power cycle
	noReset bool          // a reset can hang the node: off, wait, on takes its place
}

// The names of the drivers in bmclib's registrar, and what they claim there.
var registered = map[Protocol]struct {
	name, protocol string
	features       registrar.Features
}{
	IPMI:    {driverName, driverProtocol, driverFeatures},
	Redfish: {redfishName, redfishProtocol, driverFeatures},
	RPC:     {rpc.ProviderName, rpc.ProviderProtocol, rpc.Features},
}
