// SPDX-License-Identifier: Apache-2.0

// Package qemu says how one of the lab's machines is built from QEMU's parts: its
// firmware, its argument vector, its disk, and which device its firmware tries
// first. It starts nothing.
package qemu

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/vlanport"
)

// platform is what machines of an architecture are emulated with. Only TCG is used:
// nested KVM is missing or broken on most build hosts, and emulation is the same
// everywhere.
type platform struct {
	program    string
	board      []string
	code, vars string // UEFI, from Debian's packages ovmf and qemu-efi-aarch64
}

var (
	x86 = platform{"qemu-system-x86_64", []string{"-machine", "q35,graphics=off"}, "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"}
	// Variables of the firmware are written in system management mode alone.
	secure = platform{"qemu-system-x86_64", []string{"-machine", "q35,graphics=off,smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on"}, "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"}
	arm    = platform{"qemu-system-aarch64", []string{"-machine", "virt", "-cpu", "cortex-a57"}, "/usr/share/AAVMF/AAVMF_CODE.fd", "/usr/share/AAVMF/AAVMF_VARS.fd"}
)

func platformOf(h rack.Hardware) platform {
	switch h {
	case rack.ARM64:
		return arm
	case rack.Secure:
		return secure
	}
	return x86
}

// Program is the emulator of a machine.
func Program(h rack.Hardware) string { return platformOf(h).program }

// The PCI addresses are part of the site's `hardware` blocks.
const (
	bootAddr = "0x3" // 0000:00:03.0
	railAddr = "0x4" // 0000:00:04.0
	rngAddr  = "0x6"
)

// Files are the paths of one machine below the lab's state folder.
type Files struct {
	Dir     string
	Disk    string // the system disk: raw, sparse, kept
	Vars    string // UEFI variables, one copy a machine, kept
	Console string // all that the serial port ever printed
	Log     string // what QEMU itself says
	QMP     string // socket
	Port    string // socket of the switch port of a machine that is Tagged

	TPM, TPMSocket, TPMLog string // of machines with a TPM: what swtpm keeps (a folder), where QEMU finds it, what it says
}

// FilesIn names the machine's files below the state folder.
func FilesIn(state, machine string) Files {
	dir := filepath.Join(state, machine)
	return Files{
		Dir: dir, Disk: filepath.Join(dir, "disk.raw"), Vars: filepath.Join(dir, "vars.fd"),
		Console: filepath.Join(dir, "console.log"), Log: filepath.Join(dir, "qemu.log"), QMP: filepath.Join(dir, "qmp.sock"), Port: filepath.Join(dir, "port"),
		TPM: filepath.Join(dir, "tpm"), TPMSocket: filepath.Join(dir, "tpm.sock"), TPMLog: filepath.Join(dir, "tpm.log"),
	}
}

// DiskFile is the path of one of the machine's disks.
func (f Files) DiskFile(name string) string {
	if name == rack.SystemDisk {
		return f.Disk
	}
	return filepath.Join(f.Dir, "disk-"+name+".raw")
}

// Start is what one start of a machine needs beside its row and its files.
type Start struct {
	NICIndex int         // bootindex of the management NIC; the system disk has diskIndex
	SOLPort  int         // TCP port on loopback where ipmi_sim finds the serial port
	NoRail   bool        // a fault: the rail NIC is missing
	Disks    []rack.Disk // the system disk first
}

// Args returns QEMU's argument vector, the program first. The machine starts stopped (-S): the supervisor
// connects, sets what has to be set, and lets it run. It pauses when the guest
// switches itself off or resets: its last counters are read, and after a reset
// the supervisor starts it again with the order of the next boot. Both boot
// devices always have a bootindex: without one OVMF ignores the netboot request.
//
// The order could also be changed over QMP in the running process, and that works
// with OVMF. Not with SeaBIOS 1.16: on every warm reset it finds that it has run
// before and resets the machine once or twice more by itself, so that the order of
// "this one boot" is over before the boot begins (seen with QEMU 7.2).
func Args(m rack.Machine, f Files, s Start) []string {
	p := platformOf(m.Hardware)
	a := append([]string{p.program, "-name", m.Name}, p.board...)
	a = append(a, "-accel", "tcg,tb-size=256", "-smp", "1", "-m", strconv.Itoa(cmp.Or(m.Memory, rack.DefaultMemory)),
		"-nodefaults", "-no-user-config", "-display", "none", "-vga", "none", "-S",
		"-action", "reboot=shutdown,shutdown=pause",
		"-uuid", m.UUID,
		"-smbios", "type=1,manufacturer=ironrail,product="+string(m.Hardware)+",serial="+m.Serial+",uuid="+m.UUID,
		"-smbios", "type=3,manufacturer=ironrail,serial="+m.Serial,
		"-qmp", "unix:"+f.QMP+",server=on,wait=off",
		"-chardev", "socket,id=sol,host=127.0.0.1,port="+strconv.Itoa(s.SOLPort)+",server=on,wait=off,logfile="+f.Console+",logappend=on",
		"-serial", "chardev:sol",
		"-device", "virtio-rng-pci,addr="+rngAddr,
	)
	a = append(a, firmwareArgs(m.Hardware, f)...)
	if m.Hardware.HasTPM() {
		a = append(a, "-chardev", "socket,id=tpm,path="+f.TPMSocket, "-tpmdev", "emulator,id=tpm0,chardev=tpm", "-device", "tpm-tis,tpmdev=tpm0")
	}
	a = append(a, bootNIC(m, f, s)...)
	if !s.NoRail {
		a = append(a, "-netdev", "tap,id=rail0,ifname="+m.RailTap()+",script=no,downscript=no",
			"-device", "virtio-net-pci,id=nic1,netdev=rail0,mac="+m.RailMAC+",romfile=,addr="+railAddr)
	}
	for i, d := range s.Disks {
		a = append(a, diskArgs(f, i, d)...)
	}
	return a
}

// TPMArgs is the argument vector of the emulator of a machine's TPM 2.0, which ends with QEMU;
// nil where the machine has none.
func TPMArgs(m rack.Machine, f Files) []string {
	if !m.Hardware.HasTPM() {
		return nil
	}
	return []string{"swtpm", "socket", "--tpm2", "--tpmstate", "dir=" + f.TPM, "--ctrl", "type=unixio,path=" + f.TPMSocket, "--log", "file=" + f.TPMLog + ",level=1", "--terminate"}
}

// diskArgs are those of the i-th disk. Firmware tries the disks in their order, all
// but the first after the NIC.
func diskArgs(f Files, i int, d rack.Disk) []string {
	n, index := strconv.Itoa(i), diskIndex
	if i > 0 {
		index = diskFirst + i
	}
	device := "virtio-blk-pci,id=disk" + n + ",drive=d" + n + ",serial=" + d.Serial + ",bootindex=" + strconv.Itoa(index) +
		",addr=0x" + strings.TrimSuffix(strings.TrimPrefix(d.PCI, "0000:00:"), ".0")
	if d.Block != 512 {
		block := strconv.Itoa(d.Block)
		device += ",logical_block_size=" + block + ",physical_block_size=" + block
	}
	return []string{"-drive", "file=" + f.DiskFile(d.Name) + ",if=none,id=d" + n + ",format=raw,cache=unsafe,discard=unmap", "-device", device}
}

// bootNIC is the management NIC. Its ROM is iPXE by default, which under UEFI
// would answer in place of EDK2's own client: romfile= removes it there.
func bootNIC(m rack.Machine, f Files, s Start) []string {
	rom := ""
	if m.Hardware != rack.BIOS {
		rom = ",romfile="
	}
	at := []string{"-netdev", "tap,id=boot0,ifname=" + m.BootTap() + ",script=no,downscript=no"}
	if m.Hardware == rack.Tagged {
		at = vlanport.Args("boot0", f.Port)
	}
	return append(at, "-device", "virtio-net-pci,id="+BootNIC+",netdev=boot0,mac="+m.BootMAC+rom+",bootindex="+strconv.Itoa(s.NICIndex)+",addr="+bootAddr)
}

// firmwareArgs returns the arguments of the machine's firmware: none is SeaBIOS.
func firmwareArgs(h rack.Hardware, f Files) []string {
	if h == rack.BIOS {
		return nil
	}
	a := []string{
		"-drive", "if=pflash,format=raw,unit=0,readonly=on,file=" + platformOf(h).code,
		"-drive", "if=pflash,format=raw,unit=1,file=" + f.Vars,
		"-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n",
	}
	if h == rack.UEFIHTTP {
		a = append(a, "-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n")
	}
	return a
}

// Prepare makes what the machine needs before its first start: its folder, the
// sparse disks and, for UEFI, its own copy of the variables. What is there is
// kept.
func Prepare(m rack.Machine, f Files, disks []rack.Disk) error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return fmt.Errorf("machine %s: folder: %w", m.Name, err)
	}
	if m.Hardware.HasTPM() {
		if err := os.MkdirAll(f.TPM, 0o700); err != nil {
			return fmt.Errorf("machine %s: folder of the TPM: %w", m.Name, err)
		}
	}
	for _, d := range disks {
		if err := createSparse(f.DiskFile(d.Name), int64(d.Size)); err != nil {
			return fmt.Errorf("machine %s: disk %s: %w", m.Name, d.Name, err)
		}
	}
	if m.Hardware == rack.BIOS {
		return nil
	}
	p := platformOf(m.Hardware)
	for _, name := range []string{p.code, p.vars} {
		if _, err := os.Stat(name); err != nil {
			return errkind.New(errkind.Unsupported, "machine %s: firmware: %w", m.Name, err).Do("run ironrail-lab check --install")
		}
	}
	change := func(b []byte) ([]byte, error) { return b, nil }
	if m.Hardware == rack.Tagged {
		change = func(b []byte) ([]byte, error) {
			mac, err := net.ParseMAC(m.BootMAC)
			if err != nil {
				return nil, err
			}
			return vlanport.Firmware(b, mac, rack.VLAN)
		}
	}
	if err := copyNew(p.vars, f.Vars, change); err != nil {
		return fmt.Errorf("machine %s: UEFI variables: %w", m.Name, err)
	}
	return nil
}

// createSparse makes an empty disk; one that exists is kept whatever its size.
func createSparse(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// copyNew copies, changed, by way of a temporary name: a half-copied variable store would
// be kept forever.
func copyNew(from, to string, change func([]byte) ([]byte, error)) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	b, err := os.ReadFile(from)
	if err == nil {
		b, err = change(b)
	}
	if err == nil {
		err = os.WriteFile(to+".new", b, 0o600)
	}
	if err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}
