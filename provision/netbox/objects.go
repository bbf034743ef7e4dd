// SPDX-License-Identifier: Apache-2.0

package netbox

// Export is what was read of NetBox. The types below have the fields that are used, by the
// names of its API.
type Export struct {
	Racks      []Rack
	Devices    []Device
	Cables     []Cable
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
	Length     *float64      `json:"length"`
	LengthUnit *Choice       `json:"length_unit"`
	A          []Termination `json:"a_terminations"`
	B          []Termination `json:"b_terminations"`
}

// Termination is one end of a cable.
type Termination struct {
	Type   string `json:"object_type"` // dcim.interface, dcim.frontport and others
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
