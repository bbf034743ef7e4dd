// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
)

// place is where a disk is: what it hangs from below its controller, and what udev
// and the agent read its name by path and its bay from.
type place struct {
	bay    string
	nsid   string            // of NVMe: the number of the namespace
	device string            // of SATA and SAS: folder of the device, below that of its controller
	files  map[string]string // text of files below sys
	hosts  []string          // folders of other SCSI hosts, below that of the controller
}

// The names of links in /dev/disk/by-path, as udev (path_id of systemd) forms them.
var (
	byPathForm = lazyregexp.New(`^pci-([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?:-pci-([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]))?(?:-(.+))?$`)
	nvmeForm   = lazyregexp.New(`^nvme-([0-9]+)$`)
	ataForm    = lazyregexp.New(`^ata-([0-9]+)\.([0-9]+)(\.0)?$`)
	sasForm    = lazyregexp.New(`^sas-(?:(?:exp(0x[0-9a-f]+)-)?phy([0-9]+)|(0x[0-9a-f]+))-lun-([0-9]{1,2})$`)
	scsiForm   = lazyregexp.New(`^scsi-([0-9]):([0-9]+):([0-9]+):([0-9]+)$`)
)

// byPath is such a name in its parts.
type byPath struct {
	controller string // PCI address
	above      string // PCI address of what it is behind (Intel VMD); empty: nothing
	bus        string // from there on: nvme-1, ata-3.0; empty for virtio
}

// parseByPath reads what a disk block says. A name of a bus that the rack has not
// gives the controller alone; the block then fits none of the disks.
func parseByPath(name string) byPath {
	m := byPathForm.FindStringSubmatch(name)
	if m == nil {
		return byPath{}
	}
	p := byPath{controller: m[1], bus: m[3]}
	if m[2] != "" {
		p.above, p.controller = m[1], m[2]
	}
	return p
}

// kind is the type of disk that such a name is of, "" where none is; of SAS it may be
// a SATA disk as well.
func (p byPath) kind() string {
	switch {
	case p.controller == "":
		return ""
	case p.bus == "":
		return "virtio"
	case nvmeForm.MatchString(p.bus):
		return "nvme"
	case ataForm.MatchString(p.bus):
		return "sata"
	case sasForm.MatchString(p.bus), scsiForm.MatchString(p.bus):
		return "sas"
	}
	return ""
}

// places hands out the bays and the ports of controllers that no disk block names.
type places struct {
	bays  map[string]bool
	ports map[string]bool // by PCI address and number
	hosts map[int]int     // SCSI host of a controller, by function
}

func newPlaces(h *inventory.Hardware) *places {
	p := &places{bays: map[string]bool{}, ports: map[string]bool{}, hosts: map[int]int{}}
	for _, d := range h.Disks {
		p.bays[d.Bay] = true
		at := parseByPath(d.ByPath)
		if m := ataForm.FindStringSubmatch(at.bus); m != nil {
			p.ports[at.controller+" "+m[1]] = true
		}
		if m := sasForm.FindStringSubmatch(at.bus); m != nil {
			p.ports[at.controller+" "+m[2]] = true
		}
	}
	return p
}

// bay is the declared one, or the lowest number that is free.
func (p *places) bay(declared string) string {
	if declared != "" {
		return declared
	}
	return takeLowest(p.bays, "", 0)
}

// takeLowest takes the lowest number that is free.
func takeLowest(taken map[string]bool, of string, from int) string {
	for n := from; ; n++ {
		if key := of + strconv.Itoa(n); !taken[key] {
			taken[key] = true
			return strconv.Itoa(n)
		}
	}
}

// bus completes what a block says of the bus of a disk of a kind.
func (p *places) bus(at byPath, kind, controller string) string {
	scsi := at.kind() == "sata" || at.kind() == "sas"
	switch {
	case kind == "nvme" && at.kind() != kind:
		return "nvme-1"
	case kind == "sata" && !scsi:
		return "ata-" + takeLowest(p.ports, controller+" ", 1) + ".0"
	case kind == "sas" && !scsi:
		return "sas-phy" + takeLowest(p.ports, controller+" ", 0) + "-lun-0"
	}
	return at.bus
}

// place puts the i-th disk of a chassis onto a bus of a function.
func (p *places) place(d slot, i int, bus, bay string) place {
	if _, known := p.hosts[d.function]; !known {
		p.hosts[d.function] = 16 * i // a controller may have several
	}
	host := p.hosts[d.function]
	at := place{bay: p.bay(bay), files: map[string]string{}}
	if m := nvmeForm.FindStringSubmatch(bus); m != nil {
		at.nsid = m[1]
	} else if m := ataForm.FindStringSubmatch(bus); m != nil {
		channel, target := "0", m[2]
		if m[3] != "" { // behind a port multiplier
			channel, target = m[2], "0"
		}
		port := fmt.Sprintf("ata%d", i+1)
		at.device = fmt.Sprintf("%s/host%d/target%d:%s:%s/%d:%s:%s:0", port, 16*i, 16*i, channel, target, 16*i, channel, target)
		at.files["class/ata_port/"+port+"/port_no"] = m[1]
	} else if m := sasForm.FindStringSubmatch(bus); m != nil {
		at.sas(host, i, m)
	} else if m := scsiForm.FindStringSubmatch(bus); m != nil {
		n, _ := strconv.Atoi(m[1]) // the form has one digit
		at.device = fmt.Sprintf("host%d/target%d:%s:%s/%d:%s:%s:%s", host+n, host+n, m[2], m[3], host+n, m[2], m[3], m[4])
		at.hosts = append(at.hosts, fmt.Sprintf("host%d", host))
	}
	return at
}

// sas is the place of a disk behind a SAS controller: on a phy of it, on a phy of an
// expander, or on a port of several phys, which is known by the disk's own address.
func (at *place) sas(host, i int, m []string) {
	port, end := fmt.Sprintf("port-%d:%d", host, i), fmt.Sprintf("end_device-%d:%d", host, i)
	above := path.Join(fmt.Sprintf("host%d", host), port)
	if m[1] != "" {
		expander := fmt.Sprintf("expander-%d:%d", host, i)
		port, end = fmt.Sprintf("port-%d:%d:0", host, i), fmt.Sprintf("end_device-%d:%d:0", host, i)
		above = path.Join(above, expander, port)
		at.files["class/sas_device/"+expander+"/sas_address"] = m[1]
	}
	phys, address := "1", fmt.Sprintf("0x5000c500%08x", i)
	if m[3] != "" {
		phys, address = "4", m[3]
	}
	at.device = path.Join(above, end, fmt.Sprintf("target%d:0:%d/%d:0:%d:%s", host, i, host, i, m[4]))
	at.files["class/sas_port/"+port+"/num_phys"] = phys
	at.files["class/sas_device/"+end+"/sas_address"] = address
	if m[2] != "" {
		at.files["class/sas_device/"+end+"/phy_identifier"] = m[2]
	}
}

// enclosure is the name of the SES enclosure that SATA and SAS disks sit in.
const enclosure = "sys/class/enclosure/0:0:24:0"

// addBay shows the bay of a disk: a slot of the enclosure, or a PCIe slot, of which a
// name with a slash cannot be.
func (s *shape) addBay(t *tree, i int, d slot, device string) {
	if d.kind == "sata" || d.kind == "sas" {
		component := branch{tree: t, dir: path.Join(enclosure, fmt.Sprintf("Slot %02d", i+1))}
		component.text("slot", d.place.bay)
		branch{t, component.dir, isPresent(d.function)}.link("device", device)
		return
	}
	if address := s.functions[d.function].address; !strings.Contains(d.place.bay, "/") {
		branch{tree: t, dir: path.Join("sys/bus/pci/slots", d.place.bay)}.text("address", strings.TrimSuffix(address, path.Ext(address)))
	}
}

// controllerOf returns the function at an address, which it adds when there is none,
// or a new function at an address that is free.
func (s *shape) controllerOf(a *addresses, at byPath, pci string, f function) int {
	f.address = at.controller
	if f.address == "" {
		f.address = pci
	}
	if f.address == "" {
		f.address = a.next()
	}
	if i := slices.IndexFunc(s.functions, func(x function) bool { return x.address == f.address }); i >= 0 {
		return i
	}
	if at.above != "" {
		bus, _, _ := cutLast(f.address, ":")
		s.parent[f.address] = path.Join(pciDir(at.above), "pci"+bus)
	}
	s.functions = append(s.functions, f)
	return len(s.functions) - 1
}
