// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

func getChassisAll(c *call) obj {
	return c.collection("Chassis", "Chassis Collection", c.s.members(c.s.p.Chassis, c.s.q.ExtraChassis))
}

func getChassis(c *call) obj {
	s, p, id := c.s, &c.s.p, c.s.c.Identity()
	at := func(part string) obj { return linkTo("Chassis", p.Chassis, part) }
	o := obj{
		"@odata.type": "#Chassis.v1_18_0.Chassis", "Id": p.Chassis, "Name": "Chassis", "ChassisType": "RackMount",
		"Manufacturer": s.manufacturer(), "Model": s.model(), "SerialNumber": id.ChassisSerial, "PartNumber": "",
		"PowerState": s.c.Power(), "IndicatorLED": s.indicator(), "LocationIndicatorActive": s.indicator() != ledOff, "Status": obj{"State": "Enabled", "Health": s.health(), "HealthRollup": s.health()},
		"Power": at("Power"), "Thermal": at("Thermal"), "PowerSubsystem": at("PowerSubsystem"), "ThermalSubsystem": at("ThermalSubsystem"),
		"Sensors": at("Sensors"), "PCIeDevices": at("PCIeDevices"), "NetworkAdapters": at("NetworkAdapters"),
		"Links": obj{"ComputerSystems": []obj{linkTo("Systems", p.System)}, "ManagedBy": []obj{linkTo("Managers", p.Manager)}},
		"Actions": obj{"#Chassis.Reset": obj{"target": joinURI("Chassis", p.Chassis, "Actions", "Chassis.Reset"),
			"ResetType@Redfish.AllowableValues": p.Resets}},
	}
	if p.SerialAtSKU {
		o["SKU"] = id.Serial
	}
	s.hang(o, "Chassis")
	return o
}

// kinds are the units of sensors in Redfish's words.
var kinds = map[string]struct{ kind, units string }{
	"W": {"Power", "W"}, "Cel": {"Temperature", "Cel"}, "RPM": {"Rotational", "RPM"}, "V": {"Voltage", "V"},
}

// sensorsOf returns the sensors of one unit.
func sensorsOf(all []chassis.Sensor, unit string) []chassis.Sensor {
	var out []chassis.Sensor
	for _, x := range all {
		if x.Unit == unit {
			out = append(out, x)
		}
	}
	return out
}

// watts is the node's consumption: the first sensor of power.
func (s *server) watts() float64 {
	if w := sensorsOf(s.c.Sensors(), "W"); len(w) > 0 {
		return w[0].Reading
	}
	return 0
}

func supplyID(i int) string { return fmt.Sprintf("PSU%d", i+1) }

// statusCritical is the status of a part in a state that has failed.
func statusCritical(state string) obj {
	return obj{"State": state, "Health": "Critical", "HealthRollup": "Critical"}
}

// supplyStatus is the status of a power supply with or without mains, and of one
// that has failed.
func supplyStatus(live, failed bool) obj {
	switch {
	case live && failed:
		return statusCritical("Enabled")
	case live:
		return statusOK()
	}
	return statusCritical("UnavailableOffline")
}

func inputVolts(live bool) float64 {
	if live {
		return 230
	}
	return 0
}

func getPower(c *call) obj {
	s := c.s
	here := joinURI("Chassis", s.p.Chassis, "Power")
	supplies, failed := s.c.Supplies(), s.c.Failed()
	psus, voltages := []obj{}, []obj{}
	for i, live := range supplies {
		psus = append(psus, obj{"@odata.id": fmt.Sprintf("%s#/PowerSupplies/%d", here, i), "MemberId": supplyID(i), "Name": supplyID(i),
			"PowerSupplyType": "AC", "LineInputVoltage": inputVolts(live), "LastPowerOutputWatts": s.share(supplies, failed, live && !failed[i]), "Status": supplyStatus(live, failed[i])})
	}
	for i, x := range sensorsOf(s.c.Sensors(), "V") {
		voltages = append(voltages, obj{"@odata.id": fmt.Sprintf("%s#/Voltages/%d", here, i), "MemberId": memberID(i, 0), "Name": x.Name,
			"ReadingVolts": x.Reading, "Status": statusOK()})
	}
	return obj{"@odata.type": "#Power.v1_7_1.Power", "Id": "Power", "Name": "Power",
		"PowerControl": []obj{{"@odata.id": here + "#/PowerControl/0", "MemberId": "0", "Name": "System Power Control",
			"PowerConsumedWatts": s.watts(), "Status": statusOK()}},
		"PowerSupplies": psus, "Voltages": voltages}
}

// share is what one live supply gives of the consumption.
func (s *server) share(supplies, failed []bool, live bool) float64 {
	n := 0
	for i, x := range supplies {
		if x && !failed[i] {
			n++
		}
	}
	if !live || n == 0 {
		return 0
	}
	return s.watts() / float64(n)
}

// sensorStatus is the status of what a sensor reads.
func sensorStatus(x chassis.Sensor) obj {
	if x.Critical {
		return statusCritical("Enabled")
	}
	return statusOK()
}

// limitOf is where the BMC begins to warn; null where it never does.
func limitOf(x chassis.Sensor) any {
	if x.Limit == 0 {
		return nil
	}
	return x.Limit
}

func getThermal(c *call) obj {
	here := joinURI("Chassis", c.s.p.Chassis, "Thermal")
	all := c.s.c.Sensors()
	temps, fans := []obj{}, []obj{}
	for i, x := range sensorsOf(all, "Cel") {
		temps = append(temps, obj{"@odata.id": fmt.Sprintf("%s#/Temperatures/%d", here, i), "MemberId": memberID(i, 0), "Name": x.Name,
			"ReadingCelsius": x.Reading, "UpperThresholdNonCritical": limitOf(x), "Status": sensorStatus(x)})
	}
	for i, x := range sensorsOf(all, "RPM") {
		fans = append(fans, obj{"@odata.id": fmt.Sprintf("%s#/Fans/%d", here, i), "MemberId": memberID(i, 0), "Name": x.Name,
			"Reading": int(x.Reading), "ReadingUnits": "RPM", "Status": sensorStatus(x)})
	}
	return obj{"@odata.type": "#Thermal.v1_7_1.Thermal", "Id": "Thermal", "Name": "Thermal", "Temperatures": temps, "Fans": fans}
}

func getPowerSubsystem(c *call) obj {
	return obj{"@odata.type": "#PowerSubsystem.v1_1_0.PowerSubsystem", "Id": "PowerSubsystem", "Name": "Power Subsystem", "Status": statusOK(),
		"PowerSupplies": linkTo("Chassis", c.s.p.Chassis, "PowerSubsystem", "PowerSupplies")}
}

func getSupplies(c *call) obj {
	return c.collection("PowerSupply", "Power Supply Collection", collectIDs(c.s.c.Supplies(), func(i int, _ bool) string { return supplyID(i) }))
}

func getSupply(c *call) obj {
	failed := c.s.c.Failed()
	for i, live := range c.s.c.Supplies() {
		if id := supplyID(i); id == c.args[0] {
			return obj{"@odata.type": "#PowerSupply.v1_5_0.PowerSupply", "Id": id, "Name": id, "PowerSupplyType": "AC",
				"LineInputStatus": map[bool]string{true: "Normal", false: "LossOfInput"}[live], "Status": supplyStatus(live, failed[i])}
		}
	}
	return nil
}

func getThermalSubsystem(c *call) obj {
	return obj{"@odata.type": "#ThermalSubsystem.v1_0_0.ThermalSubsystem", "Id": "ThermalSubsystem", "Name": "Thermal Subsystem", "Status": statusOK(),
		"Fans": linkTo("Chassis", c.s.p.Chassis, "ThermalSubsystem", "Fans"), "ThermalMetrics": linkTo("Chassis", c.s.p.Chassis, "ThermalSubsystem", "ThermalMetrics")}
}

// getThermalMetrics sums up the temperatures (DSP2046, ThermalMetrics).
func getThermalMetrics(c *call) obj {
	o := obj{"@odata.type": "#ThermalMetrics.v1_3_0.ThermalMetrics", "Id": "ThermalMetrics", "Name": "Thermal Metrics"}
	for i, x := range c.s.c.Sensors() {
		if x.Unit == "Cel" && x.Limit > 0 {
			o["TemperatureSummaryCelsius"] = obj{"Intake": obj{"Reading": x.Reading, "DataSourceUri": joinURI("Chassis", c.s.p.Chassis, "Sensors", sensorID(i, x))}}
		}
	}
	return o
}

func sensorID(_ int, x chassis.Sensor) string { return plainName(x.Name) }

func getFans(c *call) obj {
	return c.collection("Fan", "Fan Collection", collectIDs(sensorsOf(c.s.c.Sensors(), "RPM"), sensorID))
}

func getFan(c *call) obj {
	for i, x := range sensorsOf(c.s.c.Sensors(), "RPM") {
		if id := sensorID(i, x); id == c.args[0] {
			return obj{"@odata.type": "#Fan.v1_3_0.Fan", "Id": id, "Name": x.Name, "Status": sensorStatus(x),
				"SpeedPercent": obj{"DataSourceUri": joinURI("Chassis", c.s.p.Chassis, "Sensors", id), "SpeedRPM": x.Reading}}
		}
	}
	return nil
}

func getSensors(c *call) obj {
	return c.collection("Sensor", "Sensors", collectIDs(c.s.c.Sensors(), sensorID))
}

func getSensor(c *call) obj {
	for i, x := range c.s.c.Sensors() {
		if id := sensorID(i, x); id == c.args[0] {
			k := kinds[x.Unit]
			return obj{"@odata.type": "#Sensor.v1_6_0.Sensor", "Id": id, "Name": x.Name, "Reading": x.Reading,
				"ReadingType": k.kind, "ReadingUnits": k.units, "Status": sensorStatus(x), "Thresholds": obj{"UpperCaution": obj{"Reading": limitOf(x)}}}
		}
	}
	return nil
}
