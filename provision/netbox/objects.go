// SPDX-License-Identifier: Apache-2.0

package netbox

// Export is what was read of NetBox. The types below have the fields that are used, by the
// names of its API.
type Export struct {
	Racks      []Rack
	Devices    []Device
	Cables     []Cable
	FrontPorts []FrontPort // of patch panels, where a cable ends in one
	RearPorts  []RearPort
	Interfaces []Interface // those by which nodes boot
}

// Named is an object within another one.
type Named struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Slug string `json:"slug"`
}

// Choice is a value with the label that people see.
type Choice struct {
	Value string `json:"value"`
}

// Rack is a rack.
type Rack struct {
	ID           int     `json:"id"`
	Name         string  `json:"name"`
	Status       *Choice `json:"status"`
	Units        int     `json:"u_height"`
	StartingUnit int     `json:"starting_unit"`
	Descending   bool    `json:"desc_units"` // units are counted from the top
}

// Address is an IP address with the length of its network.
type Address struct {
	Address string `json:"address"`
}

// Device is a device. Before NetBox 3.6 its role was called device_role.
type Device struct {
	ID       int      `json:"id"`
	Name     *string  `json:"name"`
	Role     *Named   `json:"role"`
	OldRole  *Named   `json:"device_role"`
	Serial   string   `json:"serial"`
	Rack     *Named   `json:"rack"`
	Position *float64 `json:"position"` // its lowest unit
	Status   *Choice  `json:"status"`
	Primary  *Address `json:"primary_ip4"`
	OOB      *Address `json:"oob_ip"` // since NetBox 3.6
	Type     struct {
		Model string `json:"model"`
	} `json:"device_type"`
}

// Cable is a cable. An end may have several terminations, of a breakout.
type Cable struct {
	ID         int           `json:"id"`
	Type       string        `json:"type"`
	Status     *Choice       `json:"status"`
	Profile    *Choice       `json:"profile"` // since NetBox 4.5: which of its ends belong together
	Length     *float64      `json:"length"`
	LengthUnit *Choice       `json:"length_unit"`
	A          []Termination `json:"a_terminations"`
	B          []Termination `json:"b_terminations"`
}

// Termination is one end of a cable.
type Termination struct {
	Type   string `json:"object_type"` // dcim.interface, dcim.frontport and others
	ID     int    `json:"object_id"`
	Object struct {
		Name   string `json:"name"`
		Device *Named `json:"device"`
	} `json:"object"`
}

// Interface is an interface of a device.
type Interface struct {
	Name   string  `json:"name"`
	Device *Named  `json:"device"`
	MAC    *string `json:"mac_address"` // the primary one
}

// FrontPort is a port at the front of a patch panel. Before NetBox 4.5 it had one rear port.
type FrontPort struct {
	ID          int       `json:"id"`
	Name        string    `json:"name"`
	Device      *Named    `json:"device"`
	Rears       []Mapping `json:"rear_ports"`
	OldRear     *Named    `json:"rear_port"`
	OldPosition int       `json:"rear_port_position"`
}

// Mapping is the position of a rear port that a front port leads to.
type Mapping struct {
	Rear         int `json:"rear_port"`
	RearPosition int `json:"rear_port_position"`
}

// RearPort is a port at the back of a patch panel, with positions for several front ports.
type RearPort struct {
	ID        int    `json:"id"`
	Name      string `json:"name"`
	Device    *Named `json:"device"`
	Positions int    `json:"positions"`
}
