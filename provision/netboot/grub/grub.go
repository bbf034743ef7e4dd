// SPDX-License-Identifier: Apache-2.0

// Package grub writes the configurations that GRUB reads from the network: of the signed
// grubnet behind shim, which nodes with arm64 processors or Secure Boot boot. GRUB's shell splits at
// spaces, expands $ and knows ' as sh does; what goes into a configuration is checked
// or made harmless first. A leaf of provision/netboot, without I/O.
//
// They are written for GRUB 2.12 with the HTTP client, as Debian 13 has it signed. Only
// modules linked into grubnet are used: under Secure Boot there are no others.
package grub

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Names are the paths below the root, HTTP's or TFTP's, at which GRUB looks for its
// configuration, in this order: grubnet of Debian and Ubuntu (its prefix is /grub;
// debian/build-efi-images of grub2), and GRUB of RHEL and its rebuilds, below its vendor's folder or, by
// fw_path, beside itself.
func Names() []string {
	names := []string{"grub/arm64-efi/grub.cfg", "grub/x86_64-efi/grub.cfg", "grub/grub.cfg"}
	for _, vendor := range []string{"redhat", "rocky", "almalinux", "centos"} {
		names = append(names, "EFI/"+vendor+"/grub.cfg")
	}
	return append(names, "rhel/grub.cfg", "loader/rhel/grub.cfg")
}

// How long a configuration holds on, as iPXE's scripts do: five minutes of patience
// while the controller restarts, then the firmware's next boot device.
const (
	tries     = 60
	tryAgain  = 5  // seconds between two tries
	readTime  = 10 // seconds for a person to read why a boot is refused
	maxConfig = 16 << 10
)

// removable is what firmware starts from a disk without a boot entry, by architecture.
var removable = []string{"/EFI/BOOT/BOOTX64.EFI", "/EFI/BOOT/BOOTAA64.EFI"}

// device is the HTTP service as GRUB names it. The port is left out where it is HTTP's own:
// GRUB before 2.12 takes none.
func device(root netip.AddrPort) string {
	if root.Port() == 80 {
		return "(http," + root.Addr().String() + ")"
	}
	return "(http," + root.String() + ")"
}

// ChainConfig is the configuration that TFTP serves, the same to every node: it leads to
// the one that HTTP makes for the node that asks.
func ChainConfig(root netip.AddrPort) string {
	return retry("configfile " + device(root) + "/grub/grub.cfg")
}

// BootConfig is the configuration of an open attempt. Paths and arguments that GRUB could
// misread are an error of kind Refused that quotes them.
func BootConfig(a boot.Attempt, root netip.AddrPort) (string, error) {
	refuse := func(format string, args ...any) (string, error) {
		return "", errkind.New(errkind.Refused, "boot attempt %q of node %q: "+format, append([]any{a.ID, a.Node}, args...)...)
	}
	at := device(root)
	words := []string{"linux", at + a.Kernel}
	for _, p := range append([]string{a.ID, a.Kernel}, a.Initrds...) {
		if !isWord(p) {
			return refuse("%q may have letters, digits and . _ - / only", p)
		}
	}
	for _, arg := range a.Args {
		if !isArg(arg) {
			return refuse("kernel argument %q has a space, a quote or a control character", arg)
		}
		words = append(words, "'"+arg+"'")
	}
	initrd := "initrd"
	for _, p := range a.Initrds {
		initrd += " " + at + p
	}
	text := say("node "+a.Node+", boot attempt "+a.ID) + retry(strings.Join(words, " ")+" && "+initrd+" && boot")
	if len(text) > maxConfig {
		return refuse("the configuration has %d bytes and may have %d", len(text), maxConfig)
	}
	return text, nil
}

// retry does something again and again until it succeeds, then leaves.
func retry(command string) string {
	var b strings.Builder
	b.WriteString("for try in")
	for i := range tries {
		fmt.Fprintf(&b, " %d", i+1)
	}
	b.WriteString("; do\n")
	parts := strings.Split(command, " && ") // GRUB's shell knows no &&
	for i, p := range parts[:len(parts)-1] {
		fmt.Fprintf(&b, "%sif %s; then\n", strings.Repeat("  ", i+1), p)
	}
	fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", len(parts)), parts[len(parts)-1])
	for i := len(parts) - 1; i > 0; i-- {
		b.WriteString(strings.Repeat("  ", i) + "fi\n")
	}
	fmt.Fprintf(&b, "  echo \"ironrail: the controller does not answer as expected, try $try of %d\"\n  sleep %d\ndone\n", tries, tryAgain)
	return b.String() + say("giving up, going to the next boot device") + "exit\n"
}

// DiskConfig sends a node without an open attempt to its disk. Some firmware takes a loader
// that ends well for a request to show its menu, so that the disk's own loader is started
// directly; where that is refused, as an unsigned one is under Secure Boot, the
// firmware goes on.
func DiskConfig(node string) string {
	text := say("node " + node + " has no open boot attempt, going to its disk")
	for _, file := range removable {
		text += "if search --no-floppy --set=disk --file " + file + "; then\n" +
			"  if chainloader ($disk)" + file + "; then\n    boot\n  fi\nfi\n"
	}
	return text + "exit\n"
}

// RefusalConfig says why nothing is booted, waits for the reason to be read, and goes to
// the next boot device.
func RefusalConfig(reason string) string {
	return say("this node is not booted:") + say(reason) + fmt.Sprintf("sleep %d\nexit\n", readTime)
}

// say prints a line of text of unknown origin: what the shell could interpret becomes a
// question mark. At most 200 characters are kept.
func say(text string) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len() >= 200 {
			break
		}
		if r < ' ' || r > '~' || r == '\'' {
			r = '?'
		}
		b.WriteRune(r)
	}
	return "echo 'ironrail: " + b.String() + "'\n"
}

// isWord accepts paths and names that need no quotes.
func isWord(s string) bool {
	return s != "" && len(s) <= 1024 && strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-/", r))
	}) < 0
}

// isArg accepts one kernel argument: visible ASCII that fits between two '.
func isArg(s string) bool {
	return s != "" && len(s) <= 1024 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '\'' }) < 0
}
