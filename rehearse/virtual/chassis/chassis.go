// SPDX-License-Identifier: Apache-2.0

// Package chassis is the physical part of a virtual node behind every BMC front
// end: its power supplies and power state, boot override, BIOS settings,
// firmware inventory, event log, sensors and accounts. Redfish and IPMI show the
// same Chassis; the mainboard that runs while there is power is a Board.
package chassis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
)

// Power is the power state, in the words of Redfish (DSP2046, PowerState).
type Power string

// The power states. The two transitional ones last Timing.PowerOn and
// Timing.PowerOff.
const (
	Off         Power = "Off"
	PoweringOn  Power = "PoweringOn"
	On          Power = "On"
	PoweringOff Power = "PoweringOff"
)

// Exit says how a Board left off running.
type Exit int

// The ways a board ends its run. When its context has ended the value is not
// looked at.
const (
	Halt     Exit = iota // stays on and does nothing until somebody acts
	Reset                // reboots warm
	Shutdown             // switches itself off
)

// Board is what the mainboard does while it has power. Run is called once per
// power-on (cold) or reset (not cold) and must return soon after ctx ends: at
// power-off, reset or loss of mains, with errPowerOff, ErrReset or errNoMains as
// the context's cause.
type Board interface {
	Run(ctx context.Context, cold bool) Exit
}

// Timing is how long the hardware takes, on Config.Clock. A zero field means
// the default written beside it.
type Timing struct {
	PowerOn     time.Duration // from the press to On; 5 s
	PowerOff    time.Duration // from forced off to Off; 3 s
	POST        time.Duration // firmware's self test, spent by the Board; 90 s
	GracefulOff time.Duration // the OS's time to shut down; 20 s
	BMCReset    time.Duration // the BMC's own start, when it answers nothing; 60 s
}

func (t Timing) withDefaults() Timing {
	for _, f := range []struct {
		d    *time.Duration
		zero time.Duration
	}{
		{&t.PowerOn, 5 * time.Second}, {&t.PowerOff, 3 * time.Second}, {&t.POST, 90 * time.Second},
		{&t.GracefulOff, 20 * time.Second}, {&t.BMCReset, 60 * time.Second},
	} {
		if *f.d <= 0 {
			*f.d = f.zero
		}
	}
	return t
}

// Component is one entry of the firmware inventory.
type Component struct {
	ID, Name, Version string
	Updateable        bool
}

// Sensor is one reading. Unit is "W", "Cel", "RPM" or "V".
type Sensor struct {
	Name, Unit string
	Reading    float64
	Limit      float64 // the BMC warns from here on; 0: it has none
	Critical   bool    // the BMC finds it so
}

// Entry is one record of the system event log. Severity is "OK", "Warning" or
// "Critical"; SensorType is a word of Redfish's LogEntry, such as "Processor".
type Entry struct {
	ID                            int
	Created                       time.Time
	Severity, Message, SensorType string
}

// Account is one user of the BMC. Role is "Administrator", "Operator" or
// "ReadOnly".
type Account struct {
	ID                       int
	Username, Password, Role string
	Enabled                  bool
}

// Config describes the hardware. The maps and slices are never written to and
// may be shared between chassis.
type Config struct {
	Node                       string // name, for the seed's purpose and messages
	Manufacturer, Product      string
	Serial, UUID               string
	BoardSerial, ChassisSerial string
	Timing                     Timing
	BIOS                       map[string]string // attributes with their first values
	Keys                       []string          // certificates in db of Secure Boot, in PEM; none: the BMC shows no db
	Components                 []Component
	Supplies                   int             // power supplies; 0: 2
	OwnPower                   bool            // the BMC does not live off these supplies
	Sensors                    func() []Sensor // nil: a fixed set that follows the power state; must not block
	Accounts                   []Account       // an ID of 0 takes the next free one
	LockAfter                  int             // failed log-ins until an account locks; 0: 5
	LockFor                    time.Duration   // how long it stays locked; 0: 5 min
	Clock                      clock.Clock     // nil: clock.Wall
	Seed                       uint64
}

// Counts counts what the power has been through since New.
type Counts struct {
	PowerOns, PowerOffs, Resets, LostMains int
}

// Chassis is one node's physical part. Its methods are safe for concurrent use
// and never block.
type Chassis struct {
	cfg  Config
	wake chan struct{} // one token: Run has something to look at

	mu       sync.Mutex // guards everything below; never held across a wait
	board    Board
	supplies []bool  // that have mains
	failed   []bool  // that give nothing, mains or not
	stopped  int     // the fan that does not turn, counted from 1; 0: all do
	inlet    float64 // degrees Celsius of the air that comes in
	power    Power
	phase    string
	restore  Restore
	want     request                 // what Run does next
	cancel   context.CancelCauseFunc // ends what Run is in the midst of; nil when it waits
	inBoard  bool                    // that is the board, not a transition
	runCtx   context.Context         // the context cancel belongs to
	epoch    int                     // counts losses of mains
	counts   Counts
	bmcStart time.Time // since when the BMC answers; may lie ahead
	bmcBoots int

	override   Override
	bios       map[string]string // replaced, never written
	pending    map[string]string // nil: nothing pending
	keys       []string          // certificates in db; replaced, never written
	newKeys    []string          // those that wait for the next POST; likewise
	components []Component       // replaced, never written
	updates    map[string]string // component to the version of the next reset
	ignored    map[string]bool   // what LoseWrites named

	media map[string]string // virtual media slot to the image's URL

	log     []Entry
	lastID  int
	linear  bool          // a full log keeps its oldest entries
	dropped bool          // it has dropped some
	ahead   time.Duration // the BMC's clock, of the world's
	users   []user
}

// New returns a chassis that is off, with mains present and its BMC answering.
func New(cfg Config) *Chassis {
	cfg.Timing = cfg.Timing.withDefaults()
	if cfg.Clock == nil {
		cfg.Clock = clock.Wall{}
	}
	if cfg.Supplies <= 0 {
		cfg.Supplies = 2
	}
	if cfg.LockAfter <= 0 {
		cfg.LockAfter = 5
	}
	if cfg.LockFor <= 0 {
		cfg.LockFor = 5 * time.Minute
	}
	c := &Chassis{
		cfg: cfg, wake: make(chan struct{}, 1), power: Off, phase: "None", restore: AlwaysOff,
		supplies: make([]bool, cfg.Supplies), failed: make([]bool, cfg.Supplies), bmcStart: cfg.Clock.Now(), bmcBoots: 1, inlet: CoolAir,
		override: Override{Enabled: "Disabled", Target: "None"}, bios: cfg.BIOS, keys: cfg.Keys, components: cfg.Components,
	}
	for i := range c.supplies {
		c.supplies[i] = true
	}
	for _, a := range cfg.Accounts {
		c.addUser(a)
	}
	return c
}

// Identity returns the configuration with its defaults filled in, and the numbers
// of the hardware that is there now. Its maps and slices must not be changed.
func (c *Chassis) Identity() Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg
}

// Replace puts other hardware in the chassis' place: another serial number, UUID,
// board, and a BMC that starts anew, with the same accounts. It must be off.
func (c *Chassis) Replace(serial, uuid string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.power != Off {
		return ErrTransition
	}
	c.cfg.Serial, c.cfg.UUID = serial, uuid
	if c.cfg.BoardSerial != "" {
		c.cfg.BoardSerial = serial + "-B"
	}
	if c.cfg.ChassisSerial != "" {
		c.cfg.ChassisSerial = serial
	}
	c.bios, c.pending, c.keys, c.newKeys, c.components, c.updates = c.cfg.BIOS, nil, c.cfg.Keys, nil, c.cfg.Components, nil
	c.override, c.log, c.lastID = Override{Enabled: "Disabled", Target: "None"}, nil, 0
	c.bootBMC()
	return nil
}

// SetBoard sets what runs while there is power, from the next power-on or reset.
func (c *Chassis) SetBoard(b Board) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.board = b
}

// Phase returns how far the boot has come: "None", "POST", "BootLoader" or "OS".
func (c *Chassis) Phase() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase
}

// SetPhase is called by the board as the boot goes on. Without power the phase
// stays "None".
func (c *Chassis) SetPhase(phase string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.power == On {
		c.phase = phase
	}
}

// Counters returns what the power has been through.
func (c *Chassis) Counters() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// CoolAir is the air of a cool aisle, in degrees Celsius, which a chassis without
// Config.Sensors measures.
const CoolAir = 23

// Of the chassis without Config.Sensors: the warmest air that ASHRAE's class A2 allows
// (Thermal Guidelines for Data Processing Environments), and its fans.
const (
	warmAir     = 35
	fans, turns = 4, 5400
	faster      = 1.25 // that the others turn where one stands still
)

// Sensors reads all sensors.
func (c *Chassis) Sensors() []Sensor {
	if c.cfg.Sensors != nil {
		return c.cfg.Sensors()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	air := Sensor{Name: "Inlet Temp", Unit: "Cel", Reading: c.inlet, Limit: warmAir, Critical: c.inlet >= warmAir}
	if c.power == Off {
		return []Sensor{air, {Name: "Total Power", Unit: "W", Reading: 25}}
	}
	list := []Sensor{air, {Name: "CPU0 Temp", Unit: "Cel", Reading: 41}}
	for i := range fans {
		f := Sensor{Name: fmt.Sprintf("Fan%d", i+1), Unit: "RPM", Reading: turns}
		switch c.stopped {
		case 0:
		case i + 1:
			f.Reading, f.Critical = 0, true
		default:
			f.Reading *= faster
		}
		list = append(list, f)
	}
	return append(list, Sensor{Name: "Total Power", Unit: "W", Reading: 420})
}

// StopFan makes one fan, counted from 1, stand still; the others turn faster.
func (c *Chassis) StopFan(fan int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if fan < 1 || fan > fans || c.stopped == fan {
		return
	}
	c.stopped = fan
	c.record("Critical", "Fan", fmt.Sprintf("Fan%d stands still", fan))
}

// WarmAir changes the temperature of the air that comes in, in degrees Celsius.
func (c *Chassis) WarmAir(to float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.inlet; before < warmAir && to >= warmAir {
		c.record("Critical", "Temperature", fmt.Sprintf("Inlet Temp is %g degrees Celsius", to))
	}
	c.inlet = to
}
