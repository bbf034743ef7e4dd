// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// pciDir is where a function stands in sysfs.
func pciDir(address string) string {
	bus, _, _ := cutLast(address, ":")
	return "sys/devices/pci" + bus + "/" + address
}

// build makes the tree of a shape. What differs between nodes is made up from the
// node when it is read.
func (s *shape) build() *tree {
	t := newTree()
	root := branch{tree: t}
	for _, dir := range []string{"dev", "sys/class/net", "sys/class/infiniband", "sys/block", "sys/dev/block", "sys/bus/pci/devices", "sys/bus/pci/slots",
		"sys/class/ata_port", "sys/class/sas_port", "sys/class/sas_device", "sys/class/enclosure"} {
		t.put(dir, folderIf(nil))
	}
	s.addDMI(root.at("sys"))
	s.addProc(root.at("proc"))
	s.addCPUs(root.at("sys/devices/system/cpu"))
	s.addTPM(root.at("sys/class"))
	s.addNUMA(root.at("sys/devices/system/node"))
	s.addEDAC(root.at("sys/devices/system/edac/mc"))
	root.at("sys/devices/system/clocksource/clocksource0").text("current_clocksource", "tsc")
	amd := 0
	s.addBridges(t) // before what hangs on them: a folder is there as long as what it was made for
	for i, f := range s.functions {
		b := branch{t, s.dirOf(f.address), isPresent(i)}
		t.put(b.dir, folderIf(b.there))
		b.text("class", "0x"+f.class)
		b.text("vendor", "0x"+f.vendor)
		b.live("device", func(k *Kernel) string { return "0x" + k.node.deviceOf(i) })
		b.live("modalias", func(k *Kernel) string {
			f.device = k.node.deviceOf(i)
			return f.modalias()
		})
		if f.driver != "" {
			b.link("driver", "sys/bus/pci/drivers/"+f.driver)
		}
		if f.driver == "mlx5_core" {
			b.attr("vpd", func(k *Kernel) (string, error) { return k.vitalData(i), nil })
		}
		b.text("numa_node", s.numaOf(f.address))
		s.addPCIe(b, i, f)
		s.addHeat(b, i, f)
		if f.vendor == "1002" && f.class == classProcessing {
			s.addKFD(t, i, amd, f)
			amd++
		}
		branch{t, "sys/bus/pci/devices", b.there}.link(f.address, b.dir)
	}
	for i := range s.ports {
		s.addPort(t, i)
	}
	for i, d := range s.disks {
		s.addDisk(t, i, d)
	}
	t.put(path.Dir(arrayDevice), folderIf(nil)) // whichever of the two is there
	s.addArray(t)
	s.addLogical(t)
	s.addLoopback(root)
	return t.sort()
}

// isPresent reports whether a function is on the bus.
func isPresent(function int) func(*Kernel) bool {
	return func(k *Kernel) bool { return !k.node.missing(function) }
}

func folderIf(there func(*Kernel) bool) *file { return &file{mode: 0o755 | fs.ModeDir, there: there} }

func (s *shape) addDMI(b branch) {
	id := b.at("class/dmi/id")
	h := s.hardware
	id.text("sys_vendor", manufacturerOf(h))
	id.text("product_name", productOf(h))
	id.live("product_serial", func(k *Kernel) string { return k.node.Identity().Serial })
	id.live("product_uuid", func(k *Kernel) string { return k.node.Identity().UUID })
	id.text("bios_vendor", biosVendor)
	id.live("bios_version", func(k *Kernel) string { return k.node.biosVersion() })
	b.attr("firmware/dmi/tables/DMI", func(k *Kernel) (string, error) { return string(k.node.dmi()), nil })
	if h.Boot != inventory.BootBIOS {
		b.text("firmware/efi/fw_platform_size", "64")
		vars := b.at("firmware/efi/efivars")
		b.put(vars.dir, folderIf(nil))
		s.addVariables(vars)
		mok := b.at("firmware/efi/mok-variables") // drivers/firmware/efi/mokvar-table.c
		mok.there = func(k *Kernel) bool { _, err := k.node.nvram.Get(mokList); return err == nil }
		mok.attr("MokListRT", func(k *Kernel) (string, error) { list, err := k.node.nvram.Get(mokList); return string(list), err })
	}
	// Debian's kernels lock themselves down where Secure Boot is on.
	b.attr("kernel/security/lockdown", func(k *Kernel) (string, error) {
		if k.node.SecureBoot() {
			return "none [integrity] confidentiality\n", nil
		}
		return "[none] integrity confidentiality\n", nil
	})
}

func manufacturerOf(h *inventory.Hardware) string {
	if h.Vendor != "" {
		return h.Vendor
	}
	return "Generic"
}

func productOf(h *inventory.Hardware) string {
	if h.Product != "" {
		return h.Product
	}
	return h.Name
}

func (s *shape) cpuModel() string {
	if m := s.hardware.CPU.Model; m != "" {
		return m
	}
	return "Generic x86-64 CPU"
}

// sysctls are the settings of the IPv4 stack that a kernel shows for "all",
// "default" and every interface.
var sysctls = []string{"arp_announce", "arp_ignore", "rp_filter"}

func (s *shape) addProc(b branch) {
	b.live("cpuinfo", func(k *Kernel) string { return "processor\t: 0\nmodel name\t: " + k.node.cpuModel() })
	b.live("cmdline", func(k *Kernel) string { return k.cmdline })
	b.live("meminfo", func(k *Kernel) string {
		return fmt.Sprintf("MemTotal:       %d kB", usableMemory(k.node.memory())>>10)
	})
	b.attr("net/if_inet6", func(k *Kernel) (string, error) { return k.inet6() })
	b.attr("net/ipv6_route", func(k *Kernel) (string, error) { return k.routes6() })
	b.live("mdstat", func(k *Kernel) string { return k.mdstat() })
	b.live("self/auxv", func(k *Kernel) string { return auxv(k.release) })
	b.live("self/mountinfo", func(k *Kernel) string { return k.mountinfo() })
	b.live("uptime", func(k *Kernel) string {
		up := k.Uptime().Seconds()
		return fmt.Sprintf("%.2f %.2f", up, up*float64(s.threads))
	})
	b.live("sys/kernel/random/boot_id", func(k *Kernel) string { return k.bootID })
	b.live("sys/kernel/osrelease", func(k *Kernel) string { return k.release })
	conf := b.at("sys/net/ipv4/conf")
	names := []string{"all", "default"}
	for _, p := range s.ports {
		names = append(names, p.netdev)
	}
	for _, name := range names {
		for _, setting := range sysctls {
			conf.live(name+"/"+setting, func(k *Kernel) string { return k.ipv4(name, setting) })
		}
	}
}

// usableMemory returns what the kernel offers of installed memory, bytes: firmware, page
// structures and crash kernel take their part.
func usableMemory(installed int64) int64 { return installed - installed/50 }

// addTPM adds the TPM, where the firmware shows it.
func (s *shape) addTPM(class branch) {
	class.put(class.dir+"/tpm", folderIf(nil)) // of the kernel, with a TPM or without
	b := class.at("tpm/tpm0")
	b.there = func(k *Kernel) bool { return k.node.showsTPM() }
	b.put(b.dir, folderIf(b.there))
	major := "2"
	if s.hardware.TPM == "1.2" {
		major = "1"
	}
	b.text("tpm_version_major", major)
	if major == "2" {
		b.live("pcr-sha256/7", func(k *Kernel) string { return k.node.pcr7() })
	}
}

// addCPUs lays threads out as Linux does: first thread of every core, then the second.
func (s *shape) addCPUs(b branch) {
	perSocket := (s.cores + s.sockets - 1) / s.sockets
	b.live("smt/active", func(k *Kernel) string { return formatFlag(k.node.threads() > s.cores) })
	for i := range s.threads {
		core := i % s.cores
		b := branch{b.tree, b.dir, func(k *Kernel) bool { return i < k.node.threads() }}
		b.at("cpu"+strconv.Itoa(i)+"/cpufreq").text("scaling_governor", "performance")
		topology := b.at("cpu" + strconv.Itoa(i) + "/topology")
		topology.text("physical_package_id", strconv.Itoa(core/perSocket))
		topology.text("core_id", strconv.Itoa(core%perSocket))
	}
}

// addNUMA adds the NUMA nodes, each with its CPUs.
func (s *shape) addNUMA(b branch) {
	for i := range s.sockets * mostPerSocket {
		node := branch{b.tree, b.dir, func(k *Kernel) bool { return i < k.node.numaNodes() }}
		node.live("node"+strconv.Itoa(i)+"/cpulist", func(k *Kernel) string { return k.node.numaCPUs(i) })
	}
}

func (s *shape) addLoopback(b branch) {
	lo := b.at("sys/devices/virtual/net/lo")
	lo.text("address", "00:00:00:00:00:00")
	lo.text("mtu", "65536")
	b.at("sys/class/net").link("lo", lo.dir)
}

// addDisk adds a block device where its bus has it, with the attributes that its
// driver offers.
func (s *shape) addDisk(t *tree, i int, d slot) {
	there := isPresent(d.function)
	dir := s.dirOf(s.functions[d.function].address)
	var device string // what the block device hangs from
	switch d.kind {
	case "nvme":
		device = path.Join(dir, "nvme", strings.TrimSuffix(d.name, "n1"))
	case "virtio":
		device = path.Join(dir, "virtio"+strconv.Itoa(d.function))
	default:
		device = path.Join(dir, d.place.device)
	}
	b := branch{t, device, there}
	at := b
	serial := func(k *Kernel) string { return k.node.disks[i].Serial() }
	switch d.kind {
	case "nvme":
		at = b.at(d.name)
		at.text("nsid", d.place.nsid)
		b.live("serial", serial)
		b.live("model", func(k *Kernel) string { return k.node.diskModel(i) })
		b.text("transport", "pcie")
		b.text("address", s.functions[d.function].address)
		branch{t, "sys/class/nvme", there}.link(path.Base(device), device)
		at.live("wwid", func(k *Kernel) string { return "eui." + k.node.disks[i].WWN() })
	case "virtio":
		at = b.at("block/" + d.name)
		at.live("serial", serial)
	default:
		at = b.at("block/" + d.name)
		b.live("model", func(k *Kernel) string { return k.node.diskModel(i) })
		b.attr("vpd_pg80", func(k *Kernel) (string, error) {
			sn := serial(k)
			return "\x00\x80\x00" + string(rune(len(sn))) + sn, nil
		})
		b.live("wwid", func(k *Kernel) string { return "naa." + k.node.disks[i].WWN() })
	}
	rotational := "0"
	if d.kind == "virtio" {
		rotational = "1" // as virtio says of itself
	}
	at.text("size", strconv.FormatInt(d.size/512, 10))
	at.text("removable", "0")
	at.text("queue/rotational", rotational)
	at.text("queue/logical_block_size", "512")
	at.link("device", device)
	s.addRootPartition(t, at, i, d) // after the disk's own files: a folder that is made for a file is there when the file is
	branch{t, "sys/block", there}.link(d.name, at.dir)
	for name, text := range d.place.files {
		branch{t, "sys", there}.text(name, text)
	}
	for _, host := range d.place.hosts {
		t.put(path.Join(dir, host), folderIf(there))
	}
	s.addBay(t, i, d, device)
	t.put("dev/"+d.name, &file{mode: 0o660 | fs.ModeDevice, there: there})
}

// addRootPartition shows the partition of a disk that a kernel has as /.
func (s *shape) addRootPartition(t *tree, at branch, i int, d slot) {
	root := branch{t, at.dir + "/" + partitionName(d.name), func(k *Kernel) bool { return k.rootDisk() == i || k.isMember(i) }}
	t.put(root.dir, folderIf(root.there))
	root.text("partition", strconv.Itoa(rootNumber))
	branch{t, "sys/dev/block", root.there}.link(deviceNumber(i), root.dir)
}

// rootNumber is the number of the root partition of an image.
const rootNumber = 3

// partitionName is the kernel's name of the root partition: sda3, but nvme0n1p3.
func partitionName(disk string) string {
	if end := disk[len(disk)-1]; end >= '0' && end <= '9' {
		disk += "p"
	}
	return disk + strconv.Itoa(rootNumber)
}

// deviceNumber is that of the root partition of a disk, by the disk's place.
func deviceNumber(i int) string { return fmt.Sprintf("259:%d", 16*i+rootNumber) }

// mountinfo lists the root file system, where there is one on a disk.
func (k *Kernel) mountinfo() string {
	i := k.rootDisk()
	if i < 0 {
		return "1 1 0:2 / / rw - rootfs rootfs rw"
	}
	number, device, kind := deviceNumber(i), partitionName(k.node.disks[i].Name()), "ext4"
	if k.arrayOfRoot() != "" {
		number, device = arrayNumber, path.Base(arrayDevice)
	}
	if k.root.logical != "" {
		number, device = logicalNumber, "mapper/"+k.root.logical
	}
	if k.root.filesystem != "" {
		kind = k.root.filesystem
	}
	return fmt.Sprintf("24 1 %s / / rw,relatime - %s /dev/%s rw", number, kind, device)
}

// rootDisk is the place of the disk that the kernel has as /, or -1.
func (k *Kernel) rootDisk() int {
	for i, d := range k.node.disks {
		if d.holds(k.root) {
			return i
		}
	}
	return -1
}

// holds reports whether a root file system is that of the disk.
func (d *Disk) holds(root *Root) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return root != nil && d.root == root
}

// modalias is what a kernel looks a driver for the function up by, with no board
// (drivers/pci/pci-sysfs.c).
func (f function) modalias() string {
	class := strings.ToUpper(f.class + "000000")
	return fmt.Sprintf("pci:v0000%sd0000%ssv00000000sd00000000bc%ssc%si%s", strings.ToUpper(f.vendor), strings.ToUpper(f.device), class[:2], class[2:4], class[4:6])
}

// auxv is the auxiliary vector that a kernel gives to programs, as far as it is read: the
// page size (6), by what distributions call their kernels for arm64 with pages of 64 KiB
// (6.8.0-94-nvidia-64k, 5.14.0-570.el9.aarch64+64k), and the end (0).
func auxv(release string) string {
	size := uint64(4 << 10)
	if strings.HasSuffix(release, "64k") {
		size <<= 4
	}
	var b []byte
	for _, n := range []uint64{6, size, 0, 0} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return string(b)
}
