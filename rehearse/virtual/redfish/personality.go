// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"strings"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// Personality is one maker's Redfish service as data.
type Personality struct {
	Name    string // "openbmc", "idrac", "supermicro", "dgx-h100"
	Vendor  string // service root's Vendor; empty: left out
	Product string // service root's Product
	Version string // RedfishVersion
	Base    string // version of the Base message registry in message ids, "1.8"

	Manufacturer, Model       string // for a chassis.Config that names none
	System, Manager, Chassis  string // ids of the node's own resources
	ManagerModel, BMCFirmware string // the firmware component that is the BMC's own
	BIOSFirmware              string // the one that is the BIOS

	Targets  []chassis.Target // boot override targets
	Resets   []chassis.Action // reset types of the system
	Logs     []Place          // where the event log is shown
	Dump     Place            // log service that collects diagnostic data; empty: there is none
	Media    Place            // collection that the virtual media slots are in
	Slots    []Slot           // virtual media
	Settings string           // last part of the pending BIOS settings' URI
	Registry string           // name of the BIOS attribute registry
	NIC      string           // format of a port's id with its number
	NICFirst int              // number of the first port

	Accounts     string // "name" (id is the user name), "number", "slots" (fixed slots, PATCH only)
	AccountSlots int    // how many, for "slots"
	TaskName     string // format of a task's id
	Monitor      string // format of a task monitor's URI below the root, with the task's id
	PushURI      string // where an image is pushed, below the root
	Multipart    bool   // the push is multipart (UpdateParameters, UpdateFile)
	ResetStatus  int    // HTTP status of a reset that was accepted
	PatchStatus  int    // HTTP status of a change or a deletion that was accepted
	PasswordMin  int    // shortest password taken
	SerialAtSKU  bool   // SKU is the node's serial number, SerialNumber the board's (Dell)
	AlreadyFails bool   // a reset to the present state is 409, not a silent success
	BusyStatus   int    // HTTP status of a reset during a transition
	ConfigJobs   bool   // BIOS settings become a job; nothing more until it is done
	Expand       bool   // $expand is understood
	FutureState  bool   // Systems/<id>/SD takes settings as well

	Headers map[string]string // sent with every answer
	RootOem map[string]any    // Oem of the service root
	SysOem  map[string]any    // Oem of the system
	MgrOem  map[string]any    // Oem of the manager

	NotReadyCode, NotReadyText string // message id and text while not ready
	AlreadyCode, AlreadyText   string // message id and text of AlreadyFails

	Quirks     Quirks
	Firmware   []chassis.Component // a factory's firmware inventory
	Attributes map[string]string   // a factory's BIOS settings
	AdminID    int                 // the account number of the administrator
}

// Place is where a resource hangs: a collection of the root ("Systems",
// "Managers", "Chassis") and the resource's own id.
type Place struct{ Parent, ID string }

// Slot is one virtual media device.
type Slot struct {
	ID    string
	Types []string
}

// Quirks is how a service falls short of the specification. The zero value is
// a service as specified.
type Quirks struct {
	RequireETag           bool          // PATCH without If-Match is 428 (AMI)
	WeakETag              bool          // entity tags are weak and If-Match with one never matches (RFC 9110, 13.1.1)
	Flaky401              int           // about every n-th authorised request is 401; 0: none
	Flaky403              int           // about every n-th request for the firmware inventory is 403; 0: none
	LoseBoot              bool          // a boot override is answered with success and not kept
	MembersNull           bool          // an empty collection has "Members": null
	SessionLimit          int           // most sessions at a time; 0: 64
	SessionTimeout        time.Duration // a session's life without use; 0: 30 min
	NotReady              time.Duration // for this long after the BMC's start everything but the root is 503
	NotReadyRequests      int           // and so are this many requests after a start
	SlowReset             time.Duration // a reset is answered at once and acts this much later
	TrailingSlash         bool          // a URI without a slash at its end is 404
	NoSessionService      bool          // basic authentication only
	BootNeedsFullObject   bool          // a boot override needs target, enabled and mode at once
	BootModeReverts       bool          // a boot override without a mode sets legacy
	BootRejectsContinuous bool          // only "Once" and "Disabled" are taken
	BootLasts             bool          // a boot override for one boot is kept for every boot, and "None" is no target (sushy-tools with libvirt)
	BootRejectsPXE        bool          // no PXE, only UefiHttp (Dell XE9680)
	BootBusyInPOST        bool          // boot settings cannot be changed during POST
	MediaMinimal          bool          // InsertMedia takes nothing but Image
	ExtraSystems          []string      // further members of Systems that are not the node
	ExtraManagers         []string      // the same of Managers
	ExtraChassis          []string      // the same of Chassis
	ExtraFirst            bool          // they come before the node's own
}

func (q Quirks) withDefaults() Quirks {
	if q.SessionLimit <= 0 {
		q.SessionLimit = 64
	}
	if q.SessionTimeout <= 0 {
		q.SessionTimeout = 30 * time.Minute
	}
	return q
}

// Personalities returns all personalities, in the order of their names.
func Personalities() []Personality {
	return []Personality{dgxH100(), newIDRAC(), openBMC(), newSupermicro()}
}

// FindPersonality returns the personality of that name.
func FindPersonality(name string) (Personality, bool) {
	for _, p := range Personalities() {
		if p.Name == name {
			return p, true
		}
	}
	return Personality{}, false
}

// ForMaker returns the personality that a node's maker and product suggest, by
// words of their names; open firmware where none does.
func ForMaker(manufacturer, product string) Personality {
	has := func(s, word string) bool { return strings.Contains(strings.ToLower(s), word) }
	switch {
	case has(manufacturer, "dell"), has(product, "poweredge"):
		return newIDRAC()
	case has(manufacturer, "supermicro"), has(manufacturer, "super micro"):
		return newSupermicro()
	case has(product, "dgx"):
		return dgxH100()
	}
	return openBMC()
}

// PowerShelf is the service of a power shelf's management controller. Its ids are those of
// Lite-On's, whose system is a name alone; what it says of supplies is the schema's.
func PowerShelf() Personality {
	p := openBMC()
	p.Vendor, p.Product, p.Manufacturer, p.Model, p.Chassis = "", "", "ironrail", "Virtual power shelf", "powershelf"
	return p
}

// Fit fills in what a chassis leaves open: maker, product, BIOS settings and
// firmware inventory are those of the personality's factory.
func (p Personality) Fit(cfg chassis.Config) chassis.Config {
	if cfg.Manufacturer == "" {
		cfg.Manufacturer = p.Manufacturer
	}
	if cfg.Product == "" {
		cfg.Product = p.Model
	}
	if cfg.BIOS == nil {
		cfg.BIOS = p.Attributes
	}
	if cfg.Components == nil {
		cfg.Components = p.Firmware
	}
	return cfg
}

// allTargets is what most firmware offers.
func allTargets() []chassis.Target {
	return []chassis.Target{chassis.BootNone, chassis.BootPXE, chassis.BootHDD, chassis.BootCD,
		chassis.BootUSB, chassis.BootBIOSSetup, chassis.BootUEFIHTTP}
}

// allResets is what most firmware offers.
func allResets() []chassis.Action {
	return []chassis.Action{chassis.PressOn, chassis.ForceOff, chassis.GracefulShutdown, chassis.ForceRestart,
		chassis.GracefulRestart, chassis.PowerCycle, chassis.NMI}
}
