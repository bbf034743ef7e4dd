// SPDX-License-Identifier: Apache-2.0

// Package rack reads the lab's machines from the CSV files of its site: the same
// file that the inventory reads, so that the test bed and the product can never
// disagree about a serial or an address by accident.
package rack

import (
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Hardware is the kind of a virtual machine; it decides firmware and network
// boot, and is what SMBIOS reports as product.
type Hardware string

// The kinds of hardware that the lab can build.
const (
	BIOS     Hardware = "lab-bios"      // SeaBIOS; the NIC's ROM is iPXE
	UEFI     Hardware = "lab-uefi"      // OVMF; EDK2's own PXE client
	UEFIHTTP Hardware = "lab-uefi-http" // OVMF; PXE off, EDK2's HTTP boot client
	ARM64    Hardware = "lab-arm64"     // AAVMF, on processors of arm64; EDK2's own PXE client
	TPM      Hardware = "lab-tpm"       // OVMF, with a TPM 2.0; EDK2's own PXE client
	Secure   Hardware = "lab-secure"    // OVMF with Microsoft's keys and Secure Boot on, with a TPM 2.0; EDK2's own PXE client
	Tagged   Hardware = "lab-tagged"    // OVMF with VLAN for its management NIC, at a port that is a tagged member alone; EDK2's own PXE client
)

// HasTPM reports whether machines of a kind have an emulated TPM 2.0.
func (h Hardware) HasTPM() bool { return h == TPM || h == Secure }

// VLAN is the ID of the VLAN of machines that are Tagged.
const VLAN = 30

// kinds are all of them.
var kinds = []Hardware{BIOS, UEFI, UEFIHTTP, ARM64, TPM, Secure, Tagged}

// Machine is one row: one QEMU machine with its BMC.
type Machine struct {
	Name       string     `json:"name"`
	Hardware   Hardware   `json:"hardware"`
	Serial     string     `json:"serial"`
	UUID       string     `json:"uuid"` // canonical, lower case, with dashes
	BootMAC    string     `json:"boot_mac"`
	RailMAC    string     `json:"rail_mac"`
	BMCAddress netip.Addr `json:"bmc_address"`
	Memory     int        `json:"memory,omitempty"` // MiB; 0: DefaultMemory
}

// DefaultMemory is that of machines, MiB.
const DefaultMemory = 1024

// BootTap returns the name of the tap of the machine's management NIC.
func (m Machine) BootTap() string { return m.Name + "-boot" }

// RailTap returns the name of the tap of the machine's rail NIC.
func (m Machine) RailTap() string { return m.Name + "-rail" }

// columns are the ones the lab needs; others (unit, bmc_mac) are the
// inventory's alone.
var columns = []string{"name", "hardware", "serial", "uuid", "boot_mac", "rail_mac", "bmc_address"}

// The patterns keep every value fit for an interface name, a QEMU option (where
// a comma separates) and an ipmi_sim file (where a quote ends a word).
var (
	namePattern   = lazyregexp.New(`^[a-z][a-z0-9-]{0,8}$`) // NAME-boot must fit IFNAMSIZ, 15
	serialPattern = lazyregexp.New(`^[A-Za-z0-9._-]{1,20}$`)
	uuidPattern   = lazyregexp.New(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// Load reads machines.csv of the site folder and, when names are asked for, any
// machines-*.csv beside it. Without names it returns all of machines.csv; with
// names exactly these, in that order.
func Load(site string, names []string) ([]Machine, error) {
	files := []string{filepath.Join(site, "machines.csv")}
	if len(names) > 0 {
		more, err := filepath.Glob(filepath.Join(site, "machines-*.csv"))
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		files = append(files, more...)
	}
	var all []Machine
	for _, name := range files {
		ms, err := loadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, ms...)
	}
	if err := checkUnique(all); err != nil {
		return nil, fmt.Errorf("site %s: %w", site, err)
	}
	if len(names) == 0 {
		return all, nil
	}
	return chooseMachines(all, names)
}

func loadFile(name string) ([]Machine, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, errkind.New(errkind.Refused, "machines: %w", err).Do("name the folder of the lab's site with --site")
	}
	defer f.Close()
	ms, err := Parse(f)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "%s: %w", name, err).Do("correct the file; its first line names the columns")
	}
	return ms, nil
}

// Parse reads machines by the header of the CSV; unknown columns are ignored.
func Parse(r io.Reader) ([]Machine, error) {
	cr := csv.NewReader(r)
	header, err := cr.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	at := make(map[string]int, len(header))
	for i, h := range header {
		at[strings.TrimSpace(h)] = i
	}
	for _, c := range columns {
		if _, ok := at[c]; !ok {
			return nil, fmt.Errorf("column %q is missing", c)
		}
	}
	var ms []Machine
	for {
		row, err := cr.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		m, err := parseMachine(func(column string) string { return strings.TrimSpace(row[at[column]]) })
		if err != nil {
			line, _ := cr.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		ms = append(ms, m)
	}
	return ms, checkUnique(ms)
}

func parseMachine(get func(column string) string) (Machine, error) {
	m := Machine{
		Name: get("name"), Hardware: Hardware(get("hardware")), Serial: get("serial"),
		UUID: strings.ToLower(get("uuid")),
	}
	switch {
	case !namePattern.MatchString(m.Name):
		return m, fmt.Errorf("name %q: want 1 to 9 of a-z, 0-9 and -, a letter first", m.Name)
	case !slices.Contains(kinds, m.Hardware):
		return m, fmt.Errorf("hardware %q of %s is not one of %s", m.Hardware, m.Name, strings.Trim(strings.ReplaceAll(fmt.Sprint(kinds), " ", ", "), "[]"))
	case !serialPattern.MatchString(m.Serial):
		return m, fmt.Errorf("serial %q of %s: want 1 to 20 of A-Z, a-z, 0-9 and . _ -", m.Serial, m.Name)
	case !uuidPattern.MatchString(m.UUID):
		return m, fmt.Errorf("uuid %q of %s is not a UUID", m.UUID, m.Name)
	}
	var err error
	if m.BootMAC, err = checkMAC(get("boot_mac")); err != nil {
		return m, fmt.Errorf("boot_mac of %s: %w", m.Name, err)
	}
	if m.RailMAC, err = checkMAC(get("rail_mac")); err != nil {
		return m, fmt.Errorf("rail_mac of %s: %w", m.Name, err)
	}
	if m.BMCAddress, err = netip.ParseAddr(get("bmc_address")); err != nil {
		return m, fmt.Errorf("bmc_address of %s: %w", m.Name, err)
	}
	return m, nil
}

func checkMAC(s string) (string, error) {
	hw, err := net.ParseMAC(s)
	if err != nil {
		return "", err
	}
	if len(hw) != 6 || hw[0]&1 == 1 {
		return "", fmt.Errorf("%s is not the address of an Ethernet port", s)
	}
	return hw.String(), nil
}

// checkUnique refuses two machines that share what must be their own. Swapped rows
// are allowed: that is a fault that the product has to find.
func checkUnique(ms []Machine) error {
	seen := map[string]string{}
	for _, m := range ms {
		for _, v := range []string{"name " + m.Name, "mac " + m.BootMAC, "mac " + m.RailMAC, "bmc_address " + m.BMCAddress.String(), "uuid " + m.UUID} {
			if other, ok := seen[v]; ok {
				return fmt.Errorf("%s and %s both have %s", other, m.Name, v)
			}
			seen[v] = m.Name
		}
	}
	return nil
}

func chooseMachines(all []Machine, names []string) ([]Machine, error) {
	var out []Machine
	for _, n := range names {
		i := slices.IndexFunc(all, func(m Machine) bool { return m.Name == n })
		if i < 0 {
			return nil, errkind.New(errkind.Refused, "machine %q is in no machines*.csv of the site", n).Do("take a name from the CSV files")
		}
		out = append(out, all[i])
	}
	return out, checkUnique(out)
}

// GUID returns the 16 bytes of the UUID as SMBIOS stores them (SMBIOS 3.6
// section 7.2.1: the first three fields little-endian), which is also how most
// BMCs answer Get System GUID.
func (m Machine) GUID() [16]byte {
	var b [16]byte
	raw, err := hex.DecodeString(strings.ReplaceAll(m.UUID, "-", ""))
	if err != nil || len(raw) != len(b) {
		return b // not reached for a Machine from Parse
	}
	copy(b[:], raw)
	slices.Reverse(b[0:4])
	slices.Reverse(b[4:6])
	slices.Reverse(b[6:8])
	return b
}
