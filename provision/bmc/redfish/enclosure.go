// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"net/http"
	"strings"
)

// PartKind is what a part of the chassis is.
type PartKind string

// The parts of a chassis that a BMC watches.
const (
	Supply PartKind = "power supply"
	Fan    PartKind = "fan"
	Inlet  PartKind = "inlet temperature"
)

// Part is how a BMC finds one part of the chassis.
type Part struct {
	Kind   PartKind
	Name   string
	Absent bool // the slot is empty
	// Failed says that the part itself has failed or is about to; NoInput, that a supply
	// which may be good has no mains.
	Failed, NoInput bool
	Message         string // the BMC's words for it
	// Reading and Limit are of a temperature, in degrees Celsius; nil: not told.
	Reading, Limit *float64
	// Speed is that of a fan, revolutions a minute, or percent of its most where the BMC tells that
	// alone; nil: not told.
	Speed *float64
}

// status is what every resource says of itself (DSP2046, Status).
type status struct{ State, Health text }

// absent reports whether a slot has no part.
func (s status) absent() bool { return strings.EqualFold(string(s.State), "Absent") }

// silent reports whether the part measures nothing: its slot is empty, or it is off.
func (s status) silent() bool {
	return s.absent() || strings.EqualFold(string(s.State), "Disabled") || strings.EqualFold(string(s.State), "UnavailableOffline")
}

// bad reports whether the BMC finds the part failed. HealthRollup is not looked
// at: it is that of what lies below.
func (s status) bad() bool {
	return strings.EqualFold(string(s.Health), "Critical") || strings.EqualFold(string(s.Health), "Warning")
}

func (s status) says() string {
	return strings.Trim(OneLine(string(s.State))+", "+OneLine(string(s.Health)), ", ")
}

// supply is a power supply, of the resource Power and of its own one.
type supply struct {
	Name             text
	MemberID         text `json:"MemberId"`
	Status           status
	LineInputVoltage number
	LineInputStatus  text // Normal, LossOfInput, OutOfRange (schema PowerSupply)
	PowerInputWatts  number
}

// part judges a supply. One without mains is offline, and many BMCs call that
// critical; a supply that has mains and is critical has failed.
func (p supply) part() Part {
	out := Part{Kind: Supply, Name: OneLine(string(max(p.Name, p.MemberID))), Absent: p.Status.absent(), Message: p.Status.says()}
	if out.Absent {
		return out
	}
	line := strings.EqualFold(string(p.LineInputStatus), "LossOfInput") || p.LineInputVoltage.value != nil && *p.LineInputVoltage.value < 1
	offline := strings.EqualFold(string(p.Status.State), "UnavailableOffline")
	powered := p.LineInputVoltage.value != nil && *p.LineInputVoltage.value >= 1
	out.NoInput = line || offline && !powered
	out.Failed = !out.NoInput && p.Status.bad()
	if p.LineInputStatus != "" {
		out.Message += ", line input " + OneLine(string(p.LineInputStatus))
	}
	return out
}

// Parts reads power supplies, fans and the inlet temperature of the node's chassis:
// the resources Power and Thermal that nearly all services still have, else the
// subsystems that took their place (DSP2064). What a service does not have is left
// out.
func (c *Client) Parts(ctx context.Context) ([]Part, error) {
	p, err := c.where(ctx)
	if err != nil {
		return nil, err
	}
	if p.chassis == "" {
		return nil, p.enclosures
	}
	var ch struct{ Power, Thermal, PowerSubsystem, ThermalSubsystem link }
	if _, err := c.get(ctx, p.chassis, &ch); err != nil {
		return nil, err
	}
	var out []Part
	for _, of := range []struct {
		old, next link
		read      func(context.Context, string) ([]Part, error)
		replaced  func(context.Context, string) ([]Part, error)
	}{{ch.Power, ch.PowerSubsystem, c.supplies, c.supplyMembers}, {ch.Thermal, ch.ThermalSubsystem, c.airflow, c.cooling}} {
		got, err := c.partsOf(ctx, of.old, of.read)
		if err == nil && len(got) == 0 {
			got, err = c.partsOf(ctx, of.next, of.replaced)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// partsOf reads a resource that may not be there.
func (c *Client) partsOf(ctx context.Context, at link, read func(context.Context, string) ([]Part, error)) ([]Part, error) {
	if at == "" {
		return nil, nil
	}
	got, err := read(ctx, string(at))
	if isStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	return got, err
}

// supplies reads the resource Power.
func (c *Client) supplies(ctx context.Context, path string) (out []Part, err error) {
	var doc struct{ PowerSupplies []supply }
	if _, err := c.get(ctx, path, &doc); err != nil {
		return nil, err
	}
	for _, p := range doc.PowerSupplies {
		out = append(out, p.part())
	}
	return out, nil
}

// supplyMembers reads the resource PowerSubsystem.
func (c *Client) supplyMembers(ctx context.Context, path string) ([]Part, error) {
	var doc struct{ PowerSupplies link }
	if _, err := c.get(ctx, path, &doc); err != nil || doc.PowerSupplies == "" {
		return nil, err
	}
	return eachPart(ctx, c, string(doc.PowerSupplies), supply.part)
}

// fan is a fan, of the resource Thermal and of its own one.
type fan struct {
	Name    text
	FanName text // before schema 1.4
	Status  status
	Reading number // of Thermal, in RPM or percent
	// SpeedPercent is that of the resource Fan.
	SpeedPercent struct{ Reading, SpeedRPM number }
}

func (f fan) part() Part {
	p := Part{Kind: Fan, Name: OneLine(string(max(f.Name, f.FanName))), Absent: f.Status.absent(), Message: f.Status.says()}
	p.Failed = !p.Absent && f.Status.bad()
	if !p.Absent && !f.Status.silent() {
		p.Speed = cmp.Or(f.Reading.value, f.SpeedPercent.SpeedRPM.value, f.SpeedPercent.Reading.value)
	}
	return p
}

// airflow reads the resource Thermal.
func (c *Client) airflow(ctx context.Context, path string) (out []Part, err error) {
	var doc struct {
		Fans         []fan
		Temperatures []struct {
			Name                      text
			PhysicalContext           text // Intake (DSP2046)
			ReadingCelsius            number
			UpperThresholdNonCritical number
			UpperThresholdCritical    number
			Status                    status
		}
	}
	if _, err := c.get(ctx, path, &doc); err != nil {
		return nil, err
	}
	for _, f := range doc.Fans {
		out = append(out, f.part())
	}
	for _, t := range doc.Temperatures {
		name := strings.ToLower(string(t.Name))
		if t.PhysicalContext == "Intake" || strings.Contains(name, "inlet") || strings.Contains(name, "ambient") {
			out = append(out, inlet(OneLine(string(t.Name)), t.Status, t.ReadingCelsius.value, t.UpperThresholdNonCritical.value, t.UpperThresholdCritical.value)...)
		}
	}
	return out, nil
}

// cooling reads the resource ThermalSubsystem: its fans, and the air that comes in.
func (c *Client) cooling(ctx context.Context, path string) ([]Part, error) {
	var doc struct{ Fans, ThermalMetrics link }
	if _, err := c.get(ctx, path, &doc); err != nil {
		return nil, err
	}
	var out []Part
	if doc.Fans != "" {
		var err error
		if out, err = eachPart(ctx, c, string(doc.Fans), fan.part); err != nil {
			return nil, err
		}
	}
	air, err := c.partsOf(ctx, doc.ThermalMetrics, c.intake)
	return append(out, air...), err
}

// intake reads the resource ThermalMetrics: the air that comes in, whose limit the
// sensor has that measures it (DSP2046, ThermalMetrics and Sensor).
func (c *Client) intake(ctx context.Context, path string) ([]Part, error) {
	var doc struct {
		TemperatureSummaryCelsius struct {
			Intake struct {
				Reading       number
				DataSourceURI text `json:"DataSourceUri"`
			}
		}
	}
	if _, err := c.get(ctx, path, &doc); err != nil {
		return nil, err
	}
	in := doc.TemperatureSummaryCelsius.Intake
	if in.Reading.value == nil {
		return nil, nil
	}
	var sensor struct {
		Name       text
		Status     status
		Thresholds struct{ UpperCaution, UpperCritical struct{ Reading number } }
	}
	if in.DataSourceURI != "" {
		if _, err := c.get(ctx, string(in.DataSourceURI), &sensor); err != nil && !isStatus(err, http.StatusNotFound) {
			return nil, err
		}
	}
	name := OneLine(string(cmp.Or(sensor.Name, "intake")))
	return inlet(name, sensor.Status, in.Reading.value, sensor.Thresholds.UpperCaution.Reading.value, sensor.Thresholds.UpperCritical.Reading.value), nil
}

// inlet is the air that comes in, if it is measured; the first limit that is there counts.
func inlet(name string, s status, reading *float64, limits ...*float64) []Part {
	if reading == nil || s.silent() {
		return nil
	}
	p := Part{Kind: Inlet, Name: name, Message: s.says(), Reading: reading, Limit: cmp.Or(limits...)}
	p.Failed = s.bad() || p.Limit != nil && *p.Limit > 0 && *p.Reading >= *p.Limit
	return []Part{p}
}

// eachPart reads a collection one by one, as Sensors does and why.
func eachPart[T any](ctx context.Context, c *Client, path string, part func(T) Part) ([]Part, error) {
	all, err := c.members(ctx, path, maxSensors)
	if err != nil {
		return nil, err
	}
	var out []Part
	for _, l := range all {
		var doc T
		if _, err := c.get(ctx, string(l), &doc); err != nil {
			if isStatus(err, http.StatusNotFound) {
				continue
			}
			return nil, err
		}
		out = append(out, part(doc))
	}
	return out, nil
}
