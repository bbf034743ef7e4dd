// SPDX-License-Identifier: Apache-2.0

// Package ipmisim writes the files of OpenIPMI's ipmi_sim for one machine: a BMC
// that real IPMI clients talk to, and whose power is the lab's supervisor. The
// formats are those of ipmi_lan(5) and ipmi_sim_cmd(5), version 2.0.33.
package ipmisim

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
)

// Program is the simulator, of Debian's package openipmi.
const Program = "ipmi_sim"

// User is the BMC's only account, an administrator.
const User = "admin"

// maxPassword is what an IPMI 2.0 password can hold less the zero that ipmi_sim
// puts behind it.
const maxPassword = 19

// Files are the paths of one BMC below the machine's folder.
type Files struct {
	Dir      string
	LAN      string // lan.conf, holds the password, mode 0600
	Emulator string
	FRU      string
	State    string // folder; the simulator wants one even when told to keep nothing
	Log      string
}

// FilesIn names the BMC's files below the machine's folder.
func FilesIn(machineDir string) Files {
	dir := filepath.Join(machineDir, "bmc")
	return Files{
		Dir: dir, LAN: filepath.Join(dir, "lan.conf"), Emulator: filepath.Join(dir, "sim.emu"), FRU: filepath.Join(dir, "fru.bin"),
		State: filepath.Join(dir, "state"), Log: filepath.Join(dir, "ipmi_sim.log"),
	}
}

// BMC is what the files are made from.
type BMC struct {
	Machine  rack.Machine
	Password secret.Value // written to lan.conf only
	SOLPort  int          // TCP port on loopback where QEMU serves the serial port
	Chassis  []string     // the command that ipmi_sim runs for power and boot device
}

// Write writes the BMC's files, replacing older ones.
func (b BMC) Write(f Files) error {
	lan, err := b.lan()
	if err != nil {
		return fmt.Errorf("machine %s: bmc: %w", b.Machine.Name, err)
	}
	fru, err := PackFRU(b.Machine)
	if err != nil {
		return fmt.Errorf("machine %s: bmc: %w", b.Machine.Name, err)
	}
	if err := os.MkdirAll(f.State, 0o700); err != nil {
		return fmt.Errorf("machine %s: bmc: %w", b.Machine.Name, err)
	}
	return errors.Join(
		writePrivate(f.LAN, []byte(lan)),
		writePrivate(f.Emulator, []byte(emulatorConfig(f.FRU))),
		writePrivate(f.FRU, fru))
}

// writePrivate writes a file that nobody else may read, also when it was readable
// before.
func writePrivate(name string, b []byte) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(name, b, 0o600)
}

// lan is ipmi_sim's main file. The GUID travels as it is written here.
func (b BMC) lan() (string, error) {
	if err := checkPassword(b.Password.Reveal()); err != nil {
		return "", err
	}
	chassis, err := quoteCommand(b.Chassis)
	if err != nil {
		return "", err
	}
	guid := b.Machine.GUID()
	return fmt.Sprintf(`name "%s"
set_working_mc 0x20
  startlan 1
    addr %s 623
    priv_limit admin
    allowed_auths_admin md2 md5
    guid %s
  endlan
  chassis_control "%s"
  sol "tcp:127.0.0.1:%d" 115200
  user 2 true "%s" "%s" admin 10 md2 md5
`, b.Machine.Name, b.Machine.BMCAddress, hex.EncodeToString(guid[:]), chassis, b.SOLPort, User, b.Password.Reveal()), nil
}

// emulatorConfig makes one management controller, 0x20, with a FRU device. ipmi_sim's
// own ids 0x1291 and 0x0f02 let a client recognise its quirks.
func emulatorConfig(fru string) string {
	return fmt.Sprintf(`mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_add_fru_data 0x20 0 %d file 0 "%s"
sel_enable 0x20 1000 0x0a
mc_enable 0x20
`, fruBytes, fru)
}

// checkPassword refuses what the file cannot say: a word there ends at a blank,
// and a text at a quote.
func checkPassword(p string) error {
	for _, r := range p {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return errkind.New(errkind.Refused, "the BMC password has a character that ipmi_sim cannot take").Do("use letters, digits and punctuation without blank, quote and backslash")
		}
	}
	if p == "" || len(p) > maxPassword {
		return errkind.New(errkind.Refused, "the BMC password has %d characters, want 1 to %d", len(p), maxPassword).Do("set LAB_BMC_PASSWORD to such a password")
	}
	return nil
}

// quoteCommand joins words for the shell that ipmi_sim starts. Words that would need
// quoting are refused instead: they pass two parsers.
func quoteCommand(words []string) (string, error) {
	for _, w := range words {
		if !IsPlain(w) {
			return "", errkind.New(errkind.Refused, "path %q has characters that ipmi_sim's files cannot hold", w).Do("choose a folder named with letters, digits and . _ + - only")
		}
	}
	return strings.Join(words, " "), nil
}

// IsPlain reports whether s stands for itself in a shell, in ipmi_sim's files and
// in QEMU's options.
func IsPlain(s string) bool {
	for _, r := range s {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._+-", r)
		if !plain {
			return false
		}
	}
	return s != ""
}

// Args returns the simulator's arguments: no console, nothing kept (its user
// file would hold the password a second time).
func Args(f Files) []string {
	return []string{"-n", "-p", "-c", f.LAN, "-f", f.Emulator, "-s", f.State}
}
