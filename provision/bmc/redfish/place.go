// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"strings"
)

// place is where the node's resources are on this BMC.
type place struct {
	system, manager, chassis string // paths; manager and chassis may be ""
	managers, enclosures     error  // why there is no manager, or no chassis: several may be the node's; nil: there is none
	drive                    string // virtual drive that this client filled; "": none
	override                 string // where the boot override is written; "": the system
	readBack                 bool   // the override is also read there
}

// maxSystems bounds how many systems and managers are looked at; HGX boards show
// two or three.
const maxSystems = 16

// system is what is read of a ComputerSystem.
type system struct {
	path         string
	ID           text `json:"@odata.id"`
	SystemType   text
	Manufacturer text
	Model        text
	SerialNumber text
	SKU          text
	UUID         text
	BiosVersion  text
	PowerState   text
	Boot         *bootProperties
	BootProgress struct{ LastState text }
	Actions      struct {
		Reset *resetAction `json:"#ComputerSystem.Reset"`
	}
	Bios         link
	LogServices  link
	VirtualMedia link
	Links        struct{ ManagedBy, Chassis links }
	Settings     struct{ SettingsObject link } `json:"@Redfish.Settings"`
}

// resetAction is the action that changes the power.
type resetAction struct {
	Target text   `json:"target"`
	Info   link   `json:"@Redfish.ActionInfo"`
	Values []text `json:"ResetType@Redfish.AllowableValues"`
}

// where finds the node's system, manager and chassis, once.
func (c *Client) where(ctx context.Context) (*place, error) {
	if c.place != nil {
		return c.place, nil
	}
	if c.root == nil {
		if err := c.contact(ctx); err != nil {
			return nil, err
		}
	}
	path, sys, err := c.pickSystem(ctx)
	if err != nil {
		return nil, err
	}
	p := &place{system: path}
	c.learn(string(sys.Manufacturer), string(sys.Model))
	if p.manager, p.managers, err = c.pickManager(ctx, path, sys.Links.ManagedBy); err != nil {
		return nil, err
	}
	if p.chassis, p.enclosures, err = c.pickChassis(ctx, path, sys.Links.Chassis); err != nil {
		return nil, err
	}
	c.place = p
	return p, nil
}

// score says how much a system looks like the node itself.
func (c *Client) score(l link, s system) (n int) {
	if c.cfg.Serial != "" && (string(s.SerialNumber) == c.cfg.Serial || string(s.SKU) == c.cfg.Serial) {
		n += 16
	}
	if isBoard(l) {
		n -= 8
	}
	if s.Boot != nil && (s.Boot.Target != "" || len(s.Boot.Targets) > 0 || s.Boot.Enabled != "") {
		n += 4
	}
	if s.Actions.Reset != nil {
		n += 2
	}
	if s.SystemType == "Physical" {
		n++
	}
	return n
}

// isBoard reports whether a resource is of the GPU baseboard, by NVIDIA's names.
func isBoard(l link) bool { return strings.HasPrefix(strings.ToUpper(l.id()), "HGX_") }

// system reads the node's system as it is now.
func (c *Client) system(ctx context.Context) (system, error) {
	p, err := c.where(ctx)
	if err != nil {
		return system{}, err
	}
	var s system
	_, err = c.get(ctx, p.system, &s)
	return s, err
}
