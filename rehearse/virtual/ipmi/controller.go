// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"
	ipmiclock "github.com/bougou/go-ipmi/pkg/clock"
	"github.com/bougou/go-ipmi/pkg/handlers"
	"github.com/bougou/go-ipmi/pkg/protocol"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// controller is one BMC. All but the expiry of boot flags and what a console is
// sent runs on the goroutine of Serve.
type controller struct {
	c   *chassis.Chassis
	o   Options
	pc  net.PacketConn
	ctx context.Context // of Serve
	clk clock.Clock
	wg  *sync.WaitGroup // goroutines that Serve waits for

	lib    *bmc.BMC           // nil until the first datagram
	reg    *handlers.Registry // likewise
	starts int                // of the BMC; sessions end with it

	half        *bmc.Session // the last key exchange that was begun and not ended
	opened      *bmc.Session // the last that was opened, and
	rakp4       []byte       // what was answered then
	from        net.Addr     // who sent the datagram that is answered now
	asks        *bmc.Session // the session whose command is answered now
	console     *console     // nil: nobody reads the serial line
	sealing     sync.Mutex   // guards the numbers of what sessions are sent
	boot        bootFlags
	sensors     []string // names of all sensors ever seen; the number is the index and one
	sel         uint16   // the current reservation
	identifying identifyState
}

// identifyState is what Chassis Identify asked for.
type identifyState struct {
	until   time.Time
	forever bool
}

// answer returns the answer to one datagram, or nil for none.
func (k *controller) answer(pkt []byte) []byte {
	if !k.c.Live() {
		return nil
	}
	k.prepare()
	k.keepConsole()
	if len(pkt) < rmcpHeader+1 || pkt[0] != rmcpVersion {
		return nil
	}
	switch class := pkt[3] & 0x1f; {
	case class == classASF:
		return pongPacket(pkt)
	case class != classIPMI:
		return nil
	case pkt[rmcpHeader] == byte(types.AuthTypeRMCPPlus):
		return k.rmcpPlus(pkt)
	case pkt[rmcpHeader] == byte(types.AuthTypeNone):
		return k.outside15(pkt)
	}
	return nil
}

// prepare makes what sessions need, and forgets the sessions of an earlier start
// of the BMC.
func (k *controller) prepare() {
	if _, starts := k.c.BMCStarted(); starts != k.starts {
		k.starts = starts
		k.boot.stop()
		k.hangUp()
		k.lib, k.half, k.opened, k.rakp4 = nil, nil, nil, nil
	}
	if k.lib == nil {
		k.start()
	}
	for _, part := range k.c.Components() {
		if strings.Contains(part.ID, "BMC") {
			k.lib.Info.FirmwareMajor, k.lib.Info.FirmwareMinor = splitRevision(part.Version)
			break
		}
	}
}

// start makes an empty BMC.
func (k *controller) start() {
	id := k.c.Identity()
	clk := silentClock{k.clk}
	k.lib = bmc.New(deviceInfo(k.o.Personality, id.Manufacturer), parseGUID(id.UUID), store{k}, bmc.WithClock(clk), bmc.WithV15Disabled())
	k.lib.SetCipherSuites(keepSuites(k.o.Suites))
	if k.o.Sessions > 0 {
		k.lib.Sessions = bmc.NewSessionStoreWithOptions(clk, bmc.WithMaxSessions(k.o.Sessions))
	}
	if k.reg == nil {
		k.reg = k.commands()
	}
}

// keepSuites keeps the suites that there are.
func keepSuites(want []uint8) (ids []types.CipherSuiteID) {
	for _, w := range want {
		if w == 3 || w == 17 {
			ids = append(ids, types.CipherSuiteID(w))
		}
	}
	if len(ids) == 0 {
		return []types.CipherSuiteID{types.CipherSuiteID3, types.CipherSuiteID17}
	}
	return ids
}

// pongPacket answers the presence ping of ASF (IPMI 2.0, 13.2.3).
func pongPacket(pkt []byte) []byte {
	const ping = 0x80
	if len(pkt) < 12 || pkt[8] != ping {
		return nil
	}
	return protocol.BuildASFPresencePong(pkt[9])
}

// silentClock gives the library the chassis' time, and no ticker that fires:
// idle sessions are dropped when the next one is opened.
type silentClock struct{ clock.Clock }

// NewTimer is not used by the library's BMC.
func (silentClock) NewTimer(time.Duration) ipmiclock.Timer { return nil }

// NewTicker is used by the library's receive loop only.
func (silentClock) NewTicker(time.Duration) ipmiclock.Ticker { return nil }

// A maker is what Get Device ID says (IPMI 2.0, 20.1).
type maker struct {
	personality  string
	word         string // in the chassis' manufacturer, lower case
	manufacturer uint32 // IANA enterprise number
	product      uint16
}

// makers by the names that the Redfish personalities have too; the last stands
// for all that are not known.
var makers = []maker{
	{"supermicro", "supermicro", 10876, 0x1b6e},
	{"idrac", "dell", 674, 0x0100},
	{"dgx-h100", "nvidia", 5703, 0x0001},
	{"", "lenovo", 19046, 0x0001},
	{"openbmc", "", 49871, 0x0001},
}

func makerOf(personality, manufacturer string) maker {
	for _, m := range makers {
		if m.personality != "" && m.personality == personality {
			return m
		}
	}
	for _, m := range makers {
		if strings.Contains(strings.ToLower(manufacturer), m.word) {
			return m
		}
	}
	return makers[len(makers)-1]
}

func deviceInfo(personality, manufacturer string) bmc.DeviceInfo {
	m := makerOf(personality, manufacturer)
	const sensorSelChassis = 0x01 | 0x04 | 0x80 // table 20-2; the library adds SDR and FRU
	return bmc.DeviceInfo{DeviceID: 0x20, DeviceRevision: 1, FirmwareMajor: 1, IPMIVersion: 0x02,
		ManufacturerID: m.manufacturer, ProductID: m.product, AdditionalDeviceSupport: sensorSelChassis}
}
