// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

func getManagers(c *call) obj {
	return c.collection("Manager", "Manager Collection", c.s.members(c.s.p.Manager, c.s.q.ExtraManagers))
}

func getManager(c *call) obj {
	s, p := c.s, &c.s.p
	here := joinURI("Managers", p.Manager)
	since, _ := s.c.BMCStarted()
	o := obj{
		"@odata.type": "#Manager.v1_11_0.Manager", "Id": p.Manager, "Name": "Manager", "ManagerType": "BMC",
		"Model": p.ManagerModel, "FirmwareVersion": s.bmcFirmware().Version, "UUID": s.c.Identity().UUID,
		"ServiceEntryPointUUID": s.c.Identity().UUID, "PowerState": "On", "Status": statusOK(), "LastResetTime": formatTime(since),
		volatile: formatTime(s.c.Time()), "DateTimeLocalOffset": "+00:00",
		"EthernetInterfaces": linkTo("Managers", p.Manager, "EthernetInterfaces"),
		"NetworkProtocol":    linkTo("Managers", p.Manager, "NetworkProtocol"),
		"Links": obj{"ManagerForServers": []obj{linkTo("Systems", p.System)}, "ManagerForServers@odata.count": 1,
			"ManagerForChassis": []obj{linkTo("Chassis", p.Chassis)}, "ManagerForChassis@odata.count": 1},
		"Actions": obj{"#Manager.Reset": obj{"target": here + "/Actions/Manager.Reset",
			"ResetType@Redfish.AllowableValues": []chassis.Action{chassis.GracefulRestart, chassis.ForceRestart}}},
	}
	s.hang(o, "Managers")
	if p.ConfigJobs {
		o["Links"].(obj)["Oem"] = obj{"Dell": obj{"Jobs": linkTo("Managers", p.Manager, "Jobs")}}
	}
	addOEM(o, p.MgrOem)
	return o
}

// patchManager sets the BMC's clock.
func patchManager(c *call) {
	o, ok := c.body()
	if !ok || !c.only(o, volatile) {
		return
	}
	at, has, ok := c.text(o, volatile)
	if !ok {
		return
	}
	t, err := time.Parse(time.RFC3339, at)
	if !has || err != nil {
		c.fail("PropertyValueFormatError", at, volatile)
		return
	}
	c.s.c.SetTime(t)
	c.done(c.s.p.PatchStatus)
}

// resetManager restarts the BMC; this answer is the last that it gives.
func resetManager(c *call) {
	o, ok := c.body()
	if !ok {
		return
	}
	kind, has, ok := c.text(o, "ResetType")
	if !ok {
		return
	}
	if has && kind != string(chassis.GracefulRestart) && kind != string(chassis.ForceRestart) {
		c.fail("ActionParameterValueNotInList", kind, "ResetType", "Manager.Reset")
		return
	}
	c.s.c.ResetBMC()
	c.w.Header().Set("Connection", "close")
	c.done(c.s.p.ResetStatus)
}

// ownPort is the id of the BMC's network interface.
func (s *server) ownPort() string {
	if s.p.Name == "idrac" {
		return "NIC.1"
	}
	return "1"
}

func getOwnPorts(c *call) obj {
	return c.collection("EthernetInterface", "Ethernet Network Interface Collection", []string{c.s.ownPort()})
}

func getOwnPort(c *call) obj {
	if c.args[0] != c.s.ownPort() {
		return nil
	}
	vlan := 0
	if c.s.o.VLAN != nil {
		vlan = c.s.o.VLAN()
	}
	o := obj{"@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface", "Id": c.s.ownPort(), "Name": "Manager Ethernet Interface",
		"InterfaceEnabled": true, "MACAddress": c.s.o.MAC.String(), "SpeedMbps": 1000, "FullDuplex": true, "LinkStatus": "LinkUp", "Status": statusOK(),
		"IPv4Addresses": []obj{}, "VLAN": obj{"VLANEnable": vlan != 0, "VLANId": vlan}}
	if a := c.s.o.Address; a.Is4() {
		o["IPv4Addresses"] = []obj{{"Address": a.String(), "AddressOrigin": "Static"}}
	}
	return o
}

func getNetworkProtocol(*call) obj {
	return obj{"@odata.type": "#ManagerNetworkProtocol.v1_8_0.ManagerNetworkProtocol", "Id": "NetworkProtocol", "Name": "Manager Network Protocol",
		"Status": statusOK(), "HTTP": obj{"ProtocolEnabled": false, "Port": 80}, "HTTPS": obj{"ProtocolEnabled": true, "Port": 443},
		"IPMI": obj{"ProtocolEnabled": true, "Port": 623}, "SSH": obj{"ProtocolEnabled": false, "Port": 22}}
}
