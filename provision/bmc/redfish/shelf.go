// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Shelf is what the management controller of a power shelf says of it.
type Shelf struct {
	Manufacturer, Model, Serial string
	Supplies                    []ShelfSupply // in the order of the service
}

// ShelfSupply is one supply of a shelf.
type ShelfSupply struct {
	Part
	Off bool // it was switched off
}

// PowerShelf reads the supplies of a power shelf: of that chassis of the service that has
// the most. No system is looked for, since a shelf is none: Delta's service has no
// collection of them, and Lite-On's one is a name alone. What the two makers say was
// learned from exporters that read both (Delta AHE50V660A33KWR, Lite-On PF-1333-7RB): a
// supply has state and health, and its input voltage is a sensor of the chassis.
func (c *Client) PowerShelf(ctx context.Context) (Shelf, error) {
	if c.root == nil {
		if err := c.contact(ctx); err != nil {
			return Shelf{}, err
		}
	}
	if !c.LoggedIn() {
		if err := c.login(ctx); err != nil {
			return Shelf{}, err
		}
	}
	all, err := c.members(ctx, c.root.Chassis.or(rootPath+"Chassis"), maxSystems)
	if err != nil {
		return Shelf{}, err
	}
	var best Shelf
	for _, l := range all {
		got, err := c.shelf(ctx, string(l))
		if err != nil {
			return Shelf{}, err
		}
		if len(got.Supplies) > len(best.Supplies) {
			best = got
		}
	}
	return best, nil
}

// shelf reads one chassis; one that cannot be read has no supplies.
func (c *Client) shelf(ctx context.Context, path string) (out Shelf, err error) {
	var ch struct {
		Manufacturer, Model, SerialNumber text
		Power, PowerSubsystem, Sensors    link
	}
	if _, err := c.get(ctx, path, &ch); err != nil {
		return Shelf{}, ignoreUnsupported(err)
	}
	out = Shelf{Manufacturer: OneLine(string(ch.Manufacturer)), Model: OneLine(string(ch.Model)), Serial: OneLine(string(ch.SerialNumber))}
	var sub struct{ PowerSupplies link }
	if ch.PowerSubsystem != "" {
		if _, err := c.get(ctx, string(ch.PowerSubsystem), &sub); err != nil && !isStatus(err, http.StatusNotFound) {
			return Shelf{}, err
		}
	}
	if sub.PowerSupplies == "" { // the resource that PowerSubsystem took the place of
		parts, err := c.partsOf(ctx, ch.Power, c.supplies)
		for _, p := range parts {
			out.Supplies = append(out.Supplies, ShelfSupply{Part: p})
		}
		return out, err
	}
	out.Supplies, err = c.shelfSupplies(ctx, string(sub.PowerSupplies), string(ch.Sensors))
	return out, err
}

// shelfSupplies reads a collection of supplies, with their input by the chassis' sensors.
func (c *Client) shelfSupplies(ctx context.Context, path, sensors string) (out []ShelfSupply, err error) {
	links, err := c.members(ctx, path, maxSensors)
	if err != nil || len(links) == 0 {
		return nil, err
	}
	volts, err := c.inputVolts(ctx, sensors)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		var doc struct {
			supply
			PowerState text // On and Off (DSP2046); true and false of Lite-On
		}
		if _, err := c.get(ctx, string(l), &doc); err != nil {
			if isStatus(err, http.StatusNotFound) {
				continue
			}
			return nil, err
		}
		name, number := supplyNumber(l)
		doc.supply.Name = text(cmp.Or(OneLine(string(doc.supply.Name)), name))
		if v, ok := volts[number]; ok && doc.LineInputVoltage.value == nil {
			doc.LineInputVoltage.value = &v
		}
		out = append(out, ShelfSupply{Part: doc.part(), Off: strings.EqualFold(string(doc.PowerState), "Off") || doc.PowerState == "false"})
	}
	return out, nil
}

// supplyNumber reads the name of a supply's resource, such as "PowerSupplyUnit 1", and the
// number at its end; -1: there is none.
func supplyNumber(l link) (name string, number int) {
	name = l.id()
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	if n, err := strconv.Atoi(name[len(strings.TrimRight(name, "0123456789")):]); err == nil {
		return name, n
	}
	return name, -1
}

// inputSensor is the id of the sensor that measures a supply's input, with the supply's
// number: ps1_input_voltage of Delta, voltage_p0_vin of Lite-On.
var inputSensor = lazyregexp.New(`^(?:ps(\d{1,3})_input_voltage|voltage_p(\d{1,3})_vin)$`)

// inputVolts reads the input voltages of supplies by their numbers, of a collection of
// sensors; other sensors are not read: a shelf has 140 of them.
func (c *Client) inputVolts(ctx context.Context, sensors string) (map[int]float64, error) {
	out := map[int]float64{}
	if sensors == "" {
		return out, nil
	}
	all, err := c.members(ctx, sensors, maxSensors)
	if err != nil {
		return nil, ignoreUnsupported(err)
	}
	for _, l := range all {
		m := inputSensor.FindStringSubmatch(l.id())
		if m == nil {
			continue
		}
		var doc struct {
			Reading number
			Status  status
		}
		if _, err := c.get(ctx, string(l), &doc); err != nil && !isStatus(err, http.StatusNotFound) {
			return nil, err
		}
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil && doc.Reading.value != nil && !doc.Status.silent() {
			out[n] = *doc.Reading.value
		}
	}
	return out, nil
}
