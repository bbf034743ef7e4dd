// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
)

// Reading is one sensor's value.
type Reading struct {
	Name  string
	Unit  string // UCUM as in the schema Sensor: "W", "Cel", "RPM", "%", "V"
	Value float64
}

// maxSensors bounds how many sensors are read one by one.
const maxSensors = 256

// Sensors reads power, temperatures and fans of the node's chassis: the resources
// Power and Thermal that nearly all services still have, else the collection
// Sensors that took their place (DSP2064).
func (c *Client) Sensors(ctx context.Context) ([]Reading, error) {
	p, err := c.where(ctx)
	if err != nil {
		return nil, err
	}
	if p.chassis == "" {
		return nil, p.enclosures
	}
	var ch struct{ Power, Thermal, Sensors link }
	if _, err := c.get(ctx, p.chassis, &ch); err != nil {
		return nil, err
	}
	var out []Reading
	for _, old := range []struct {
		path link
		read func(context.Context, string) ([]Reading, error)
	}{{ch.Power, c.power}, {ch.Thermal, c.thermal}} {
		if old.path == "" {
			continue
		}
		got, err := old.read(ctx, string(old.path))
		if err != nil && !isStatus(err, http.StatusNotFound) {
			return nil, err
		}
		out = append(out, got...)
	}
	if len(out) > 0 || ch.Sensors == "" {
		return out, nil
	}
	return c.each(ctx, string(ch.Sensors))
}

// add appends a reading that is there. What a service shows of a sensor that is not
// measuring, mostly 0, is no reading (DSP2046, Status).
func add(out []Reading, name text, unit string, n number, s status) []Reading {
	if n.value == nil || s.silent() {
		return out
	}
	return append(out, Reading{Name: OneLine(string(name)), Unit: unit, Value: *n.value})
}

// power reads the resource Power.
func (c *Client) power(ctx context.Context, path string) (out []Reading, err error) {
	var doc struct {
		PowerControl []struct {
			Name               text
			PowerConsumedWatts number
			Status             status
		}
		Voltages []struct {
			Name         text
			ReadingVolts number
			Status       status
		}
	}
	if _, err := c.get(ctx, path, &doc); err != nil {
		return nil, err
	}
	for _, p := range doc.PowerControl {
		out = add(out, p.Name, "W", p.PowerConsumedWatts, p.Status)
	}
	for _, v := range doc.Voltages {
		out = add(out, v.Name, "V", v.ReadingVolts, v.Status)
	}
	return out, nil
}

// thermal reads the resource Thermal.
func (c *Client) thermal(ctx context.Context, path string) (out []Reading, err error) {
	var doc struct {
		Temperatures []struct {
			Name           text
			ReadingCelsius number
			Status         status
		}
		Fans []struct {
			Name         text
			FanName      text // before schema 1.4
			Reading      number
			ReadingUnits text
			Status       status
		}
	}
	if _, err := c.get(ctx, path, &doc); err != nil {
		return nil, err
	}
	for _, t := range doc.Temperatures {
		out = add(out, t.Name, "Cel", t.ReadingCelsius, t.Status)
	}
	for _, f := range doc.Fans {
		unit := "RPM"
		if f.ReadingUnits == "Percent" {
			unit = "%"
		}
		out = add(out, max(f.Name, f.FanName), unit, f.Reading, f.Status)
	}
	return out, nil
}

// each reads the collection Sensors one by one: $expand drops required properties
// on AMI and GB300 (nv-redfish bmc_quirks.rs).
func (c *Client) each(ctx context.Context, path string) ([]Reading, error) {
	all, err := c.members(ctx, path, maxSensors)
	if err != nil {
		return nil, err
	}
	var out []Reading
	for _, l := range all {
		var s struct {
			Name         text
			Reading      number
			ReadingUnits text
			Status       status
		}
		if _, err := c.get(ctx, string(l), &s); err != nil {
			if isStatus(err, http.StatusNotFound) {
				continue
			}
			return nil, err
		}
		out = add(out, s.Name, string(s.ReadingUnits), s.Reading, s.Status)
	}
	return out, nil
}

// WattsOf returns the power that the node draws as a whole: the first reading in
// watts; the schema puts the node's own before its parts (PowerControl[0]).
func WattsOf(readings []Reading) (float64, bool) {
	for _, r := range readings {
		if r.Unit == "W" {
			return r.Value, true
		}
	}
	return 0, false
}
