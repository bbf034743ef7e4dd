// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// collectIDs collects the ids of parts.
func collectIDs[T any](all []T, id func(int, T) string) []string {
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = id(i, x)
	}
	return out
}

// textOr is v, or the fallback where v is empty.
func textOr(v, fallback string) string {
	if v == "" {
		return fallback
	}
	return v
}

func processorID(i int, x Processor) string {
	if x.GPU {
		return textOr(x.ID, fmt.Sprintf("GPU%d", i))
	}
	return textOr(x.ID, fmt.Sprintf("CPU%d", i))
}

func getProcessors(c *call) obj {
	return c.collection("Processor", "Processors Collection", collectIDs(c.s.o.Hardware.Processors, processorID))
}

func getProcessor(c *call) obj {
	for i, x := range c.s.o.Hardware.Processors {
		if id := processorID(i, x); id == c.args[0] {
			kind := "CPU"
			if x.GPU {
				kind = "GPU"
			}
			return obj{"@odata.type": "#Processor.v1_13_0.Processor", "Id": id, "Name": "Processor", "Socket": id, "ProcessorType": kind,
				"Manufacturer": x.Manufacturer, "Model": x.Model, "SerialNumber": x.Serial,
				"TotalCores": x.Cores, "TotalThreads": x.Threads, "Status": statusOK()}
		}
	}
	return nil
}

func dimmID(i int, x DIMM) string { return textOr(plainName(x.Slot), fmt.Sprintf("dimm%d", i)) }

// plainName makes a name fit for a URI.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
}

func getMemories(c *call) obj {
	return c.collection("Memory", "Memory Module Collection", collectIDs(c.s.o.Hardware.DIMMs, dimmID))
}

func getMemory(c *call) obj {
	for i, x := range c.s.o.Hardware.DIMMs {
		if id := dimmID(i, x); id == c.args[0] {
			return obj{"@odata.type": "#Memory.v1_15_0.Memory", "Id": id, "Name": "Memory", "DeviceLocator": x.Slot, "MemoryType": "DRAM",
				"CapacityMiB": x.MiB, "OperatingSpeedMhz": x.MTs, "Manufacturer": x.Manufacturer, "PartNumber": x.Part,
				"SerialNumber": x.Serial, "Status": statusOK()}
		}
	}
	return nil
}

// portID is a network port's id: its own or the maker's numbering.
func (s *server) portID(i int, x NIC) string {
	return textOr(x.ID, fmt.Sprintf(s.p.NIC, i+s.p.NICFirst))
}

func getPorts(c *call) obj {
	return c.collection("EthernetInterface", "Ethernet Interface Collection", collectIDs(c.s.o.Hardware.NICs, c.s.portID))
}

// linked reports whether a port has a link.
func (s *server) linked(x NIC) bool {
	if x.Linked != nil {
		return x.Linked()
	}
	return s.c.Power() == chassis.On
}

func getPort(c *call) obj {
	for i, x := range c.s.o.Hardware.NICs {
		id := c.s.portID(i, x)
		if id != c.args[0] {
			continue
		}
		mac := x.MAC
		if x.Now != nil {
			mac = x.Now()
		}
		state := "LinkDown"
		if c.s.linked(x) {
			state = "LinkUp"
		}
		return obj{"@odata.type": "#EthernetInterface.v1_9_0.EthernetInterface", "Id": id, "Name": "Ethernet Interface", "InterfaceEnabled": true,
			"MACAddress": mac.String(), "PermanentMACAddress": mac.String(), "SpeedMbps": x.Mbps, "FullDuplex": true, "LinkStatus": state, "Status": statusOK()}
	}
	return nil
}

// controller is the only storage controller.
const controller = "1"

func getStorages(c *call) obj {
	return c.collection("Storage", "Storage Collection", []string{controller})
}

func driveID(i int, x Drive) string { return textOr(plainName(x.ID), fmt.Sprintf("Drive%d", i)) }

func getStorage(c *call) obj {
	if c.args[0] != controller {
		return nil
	}
	drives := make([]obj, 0, len(c.s.o.Hardware.Drives))
	for i, x := range c.s.o.Hardware.Drives {
		drives = append(drives, obj{"@odata.id": joinURI("Systems", c.s.p.System, "Storage", controller, "Drives", driveID(i, x))})
	}
	return obj{"@odata.type": "#Storage.v1_13_0.Storage", "Id": controller, "Name": "Storage Controller", "Status": statusOK(),
		"Drives": drives, "Drives@odata.count": len(drives)}
}

func getDrive(c *call) obj {
	for i, x := range c.s.o.Hardware.Drives {
		if id := driveID(i, x); c.args[0] == controller && id == c.args[1] {
			kind := "HDD"
			if x.SSD {
				kind = "SSD"
			}
			return obj{"@odata.type": "#Drive.v1_15_0.Drive", "Id": id, "Name": x.ID, "Model": x.Model, "SerialNumber": x.Serial,
				"CapacityBytes": x.Bytes, "MediaType": kind, "Status": statusOK()}
		}
	}
	return nil
}

func pcieID(i int, x PCIe) string { return textOr(plainName(x.ID), fmt.Sprintf("PCIe%d", i)) }

// pcieLinks are the links from the system to its PCIe devices.
func (s *server) pcieLinks() []obj {
	out := make([]obj, 0, len(s.o.Hardware.PCIe))
	for i, x := range s.o.Hardware.PCIe {
		out = append(out, linkTo("Chassis", s.p.Chassis, "PCIeDevices", pcieID(i, x)))
	}
	return out
}

func getPCIeDevices(c *call) obj {
	return c.collection("PCIeDevice", "PCIe Device Collection", collectIDs(c.s.o.Hardware.PCIe, pcieID))
}

func getPCIeDevice(c *call) obj {
	for i, x := range c.s.o.Hardware.PCIe {
		if id := pcieID(i, x); id == c.args[0] {
			return obj{"@odata.type": "#PCIeDevice.v1_9_0.PCIeDevice", "Id": id, "Name": x.Name, "Manufacturer": x.Manufacturer, "Model": x.Model,
				"SerialNumber": x.Serial, "FirmwareVersion": x.Firmware, "DeviceType": "SingleFunction",
				"PCIeInterface": obj{"LanesInUse": x.Lanes, "MaxLanes": 16}, "Status": statusOK()}
		}
	}
	return nil
}

func getAdapters(c *call) obj {
	return c.collection("NetworkAdapter", "Network Adapter Collection", collectIDs(c.s.o.Hardware.NICs, c.s.portID))
}

func getAdapter(c *call) obj {
	for i, x := range c.s.o.Hardware.NICs {
		if id := c.s.portID(i, x); id == c.args[0] {
			return obj{"@odata.type": "#NetworkAdapter.v1_9_0.NetworkAdapter", "Id": id, "Name": "Network Adapter", "Status": statusOK(),
				"Controllers": []obj{{"ControllerCapabilities": obj{"NetworkPortCount": 1}}}}
		}
	}
	return nil
}
