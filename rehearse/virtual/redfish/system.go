// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// hostOf returns the address without the port.
func hostOf(addr string) string {
	h, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return h
}

// members lists the node's own resource and those that are not the node.
func (s *server) members(own string, extra []string) []string {
	if s.q.ExtraFirst {
		return append(slices.Clone(extra), own)
	}
	return append([]string{own}, extra...)
}

func getSystems(c *call) obj {
	return c.collection("ComputerSystem", "Computer System Collection", c.s.members(c.s.p.System, c.s.q.ExtraSystems))
}

// progress is BootProgress of a boot phase (ComputerSystem.LastState).
var progress = map[string]string{
	"None": "None", "POST": "PCIResourceConfigStarted", "BootLoader": "OSBootStarted", "OS": "OSRunning",
}

func getSystem(c *call) obj {
	s, p, id := c.s, &c.s.p, c.s.c.Identity()
	here := joinURI("Systems", p.System)
	power := s.c.Power()
	state := "Enabled"
	if power == chassis.Off {
		state = "StandbyOffline"
	}
	o := obj{
		"@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem", "@odata.id": here, "Id": p.System, "Name": "System", "SystemType": "Physical",
		"Manufacturer": s.manufacturer(), "Model": s.model(), "SerialNumber": id.Serial, "UUID": id.UUID, "HostName": "", "AssetTag": "",
		"PartNumber": "", "PowerState": power, "PowerRestorePolicy": s.c.RestorePolicy(),
		"PowerRestorePolicy@Redfish.AllowableValues": []chassis.Restore{chassis.AlwaysOn, chassis.AlwaysOff, chassis.LastState},
		"Status":                  obj{"State": state, "Health": s.health(), "HealthRollup": s.health()},
		"BootProgress":            obj{"LastState": progress[s.c.Phase()]},
		"BiosVersion":             s.biosFirmware().Version,
		"IndicatorLED":            s.indicator(),
		"LocationIndicatorActive": s.indicator() != ledOff,
		"Boot":                    s.boot(),
		"Bios":                    linkTo("Systems", p.System, "Bios"),
		"SecureBoot":              linkTo("Systems", p.System, "SecureBoot"),
		"Processors":              linkTo("Systems", p.System, "Processors"),
		"Memory":                  linkTo("Systems", p.System, "Memory"),
		"Storage":                 linkTo("Systems", p.System, "Storage"),
		"PCIeDevices":             c.s.pcieLinks(),
		"PCIeDevices@odata.count": len(s.o.Hardware.PCIe),
		"EthernetInterfaces":      linkTo("Systems", p.System, "EthernetInterfaces"),
		"Links":                   obj{"Chassis": []obj{linkTo("Chassis", p.Chassis)}, "ManagedBy": []obj{linkTo("Managers", p.Manager)}},
		"Actions": obj{"#ComputerSystem.Reset": obj{"target": here + "/Actions/ComputerSystem.Reset",
			"ResetType@Redfish.AllowableValues": p.Resets}},
	}
	s.summaries(o)
	s.hang(o, "Systems")
	if p.SerialAtSKU {
		o["SerialNumber"], o["SKU"] = textOr(id.BoardSerial, id.Serial), id.Serial
	}
	if p.FutureState {
		o["@Redfish.Settings"] = obj{"@odata.type": "#Settings.v1_3_0.Settings", "SettingsObject": obj{"@odata.id": here + "/SD"}}
	}
	addOEM(o, p.SysOem)
	return o
}

// hang adds the links to what hangs at a resource only with some makers.
func (s *server) hang(o obj, parent string) {
	owner := s.owner(parent)
	for _, l := range append(s.p.Logs[:len(s.p.Logs):len(s.p.Logs)], s.p.Dump) {
		if l.Parent == parent {
			o["LogServices"] = linkTo(parent, owner, "LogServices")
		}
	}
	if s.p.Media.Parent == parent {
		o["VirtualMedia"] = linkTo(parent, owner, "VirtualMedia")
	}
}

// owner is the id of the node's own resource in a collection of the root.
func (s *server) owner(parent string) string {
	switch parent {
	case "Systems":
		return s.p.System
	case "Managers":
		return s.p.Manager
	case "Chassis":
		return s.p.Chassis
	}
	return ""
}

// health is what the power supplies make it.
func (s *server) health() string {
	if slices.Contains(s.c.Supplies(), false) || slices.Contains(s.c.Failed(), true) {
		return "Warning"
	}
	return "OK"
}

// own finds the component of the BMC's or the BIOS's own firmware: by the
// maker's id or, on a chassis that was not made for the maker, by the word.
func (s *server) own(id, word string) chassis.Component {
	var found chassis.Component
	for _, k := range s.c.Components() {
		switch {
		case k.ID == id:
			return k
		case strings.EqualFold(k.ID, word):
			found = k
		}
	}
	return found
}

func (s *server) bmcFirmware() chassis.Component  { return s.own(s.p.BMCFirmware, "BMC") }
func (s *server) biosFirmware() chassis.Component { return s.own(s.p.BIOSFirmware, "BIOS") }

// summaries adds the sums of processors and memory.
func (s *server) summaries(o obj) {
	var cpus, threads, mib int
	model := ""
	for _, x := range s.o.Hardware.Processors {
		if !x.GPU {
			cpus, threads, model = cpus+1, threads+x.Threads, x.Model
		}
	}
	for _, x := range s.o.Hardware.DIMMs {
		mib += x.MiB
	}
	o["ProcessorSummary"] = obj{"Count": cpus, "LogicalProcessorCount": threads, "Model": model, "Status": statusOK()}
	o["MemorySummary"] = obj{"TotalSystemMemoryGiB": mib / 1024, "Status": statusOK()}
}

// getFutureState is the resource whose settings come into force at the next
// boot (AMI's SD); the boot override is all that it has.
func getFutureState(c *call) obj {
	if !c.s.p.FutureState {
		return nil
	}
	return obj{"@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem", "Id": "SD", "Name": "System Future State", "Boot": c.s.boot()}
}

func patchSystem(c *call) {
	if !c.s.p.FutureState && len(c.path) > 3 && c.path[len(c.path)-3:] == "/SD" {
		c.missing()
		return
	}
	o, ok := c.body()
	if !ok || !c.only(o, "Boot", "PowerRestorePolicy", "IndicatorLED", "LocationIndicatorActive") {
		return
	}
	boot, hasBoot, ok := c.object(o, "Boot")
	if !ok || hasBoot && !c.setBoot(boot) {
		return
	}
	hasPolicy, ok := c.setRestore(o)
	if !ok {
		return
	}
	hasLight, ok := c.setLight(o)
	if !ok {
		return
	}
	if !hasBoot && !hasPolicy && !hasLight {
		c.fail("PropertyMissing", "Boot")
		return
	}
	c.done(c.s.p.PatchStatus)
}

// setRestore writes the restore policy of a PATCH; when it is wrong it has answered.
func (c *call) setRestore(o obj) (has, ok bool) {
	policy, has, ok := c.text(o, "PowerRestorePolicy")
	if !has || !ok {
		return has, ok
	}
	if err := c.s.c.SetRestore(chassis.Restore(policy)); err != nil {
		c.fail("PropertyValueNotInList", policy, "PowerRestorePolicy")
		return true, false
	}
	return true, true
}

// resetSystem is ComputerSystem.Reset and Chassis.Reset.
func resetSystem(c *call) {
	o, ok := c.body()
	if !ok {
		return
	}
	kind, has, ok := c.text(o, "ResetType")
	switch {
	case !ok:
		return
	case !has:
		c.fail("ActionParameterMissing", "ComputerSystem.Reset", "ResetType")
		return
	case !slices.Contains(c.s.p.Resets, chassis.Action(kind)):
		c.fail("ActionParameterValueNotInList", kind, "ResetType", "ComputerSystem.Reset")
		return
	}
	if d := c.s.q.SlowReset; d > 0 {
		c.s.later(d, func() { _ = c.s.c.Press(chassis.Action(kind)) }) // nobody is left to hear a refusal
		c.done(c.s.p.ResetStatus)
		return
	}
	c.pressed(kind, c.s.c.Press(chassis.Action(kind)))
}

// pressed answers what became of a reset.
func (c *call) pressed(kind string, err error) {
	p := &c.s.p
	switch {
	case err == nil, errors.Is(err, chassis.ErrAlready) && !p.AlreadyFails:
		c.done(p.ResetStatus)
	case errors.Is(err, chassis.ErrAlready):
		c.failOwn(http.StatusConflict, p.AlreadyCode, p.AlreadyText)
	case errors.Is(err, chassis.ErrTransition) && p.BusyStatus == http.StatusConflict:
		c.fail("ActionParameterValueConflict", "ResetType", kind)
	case errors.Is(err, chassis.ErrTransition):
		c.w.Header().Set("Retry-After", "5")
		c.failWith(p.BusyStatus, "ResourceInUse")
	default:
		c.fail("InternalError")
	}
}

// getExtra is a member of Systems, Managers or Chassis that is not the node:
// it has an identity of its own and no power, boot or log.
func getExtra(c *call) obj {
	kind, id := c.args[0], c.args[1]
	q := &c.s.q
	for _, x := range []struct {
		kind, schema string
		ids          []string
	}{
		{"Systems", "ComputerSystem.v1_16_0.ComputerSystem", q.ExtraSystems},
		{"Managers", "Manager.v1_11_0.Manager", q.ExtraManagers},
		{"Chassis", "Chassis.v1_18_0.Chassis", q.ExtraChassis},
	} {
		if x.kind == kind && slices.Contains(x.ids, id) {
			o := obj{"@odata.type": "#" + x.schema, "Id": id, "Name": id, "Manufacturer": c.s.manufacturer(),
				"Model": "", "SerialNumber": fmt.Sprintf("%s-%s", c.s.c.Identity().BoardSerial, id), "Status": statusOK(), "Links": obj{}}
			switch kind {
			case "Systems":
				o["SystemType"] = "Physical"
			case "Managers":
				o["ManagerType"] = "BMC"
			case "Chassis":
				o["ChassisType"] = "Component"
			}
			return o
		}
	}
	return nil
}
