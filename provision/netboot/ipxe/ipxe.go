// SPDX-License-Identifier: Apache-2.0

// Package ipxe writes the scripts that iPXE runs. Everything that goes into one
// is checked or made harmless first: iPXE has no quoting, it splits at spaces
// and expands ${...}. A leaf of provision/netboot, without I/O.
//
// The scripts are written for iPXE 1.0.0+git-20190125 (Debian 12) and later.
package ipxe

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// How long a script holds on. The controller may be restarting while nodes
// boot: five minutes of patience, then the node goes to its next boot device.
const (
	tries     = 60
	tryAgain  = 5  // seconds between two tries
	readTime  = 10 // seconds for a person to read why a boot is refused
	maxScript = 16 << 10
)

// BootScript returns the script of an open attempt. base is the URL of the HTTP root
// without a slash at its end: http://10.77.0.2:80. Paths and arguments that
// iPXE could misread are an error of kind Refused that quotes them.
//
// The initrds are named, and named again in the kernel's arguments: an EFI stub
// of the kernel finds them only so (iPXE of 2019 offers no LoadFile2), and a
// BIOS boot ignores it. Several are concatenated by iPXE or by the EFI stub.
func BootScript(a boot.Attempt, base string) (string, error) {
	if !isName(a.ID) {
		return "", errkind.New(errkind.Refused, "boot attempt %q of node %q: its name may have letters, digits, dot, dash and underscore only", a.ID, a.Node)
	}
	if !isURL(base) {
		return "", errkind.New(errkind.Refused, "boot attempt %s: %q is not the URL of an HTTP root", a.ID, base)
	}
	for _, p := range append([]string{a.Kernel}, a.Initrds...) {
		if !isPath(p) {
			return "", errkind.New(errkind.Refused, "boot attempt %s: path %q must begin with a slash and have no space, $, ?, # or control character", a.ID, p)
		}
	}
	for _, v := range a.Args {
		if !isArg(v) {
			return "", errkind.New(errkind.Refused, "boot attempt %s: kernel argument %q has a space, a control character or $, or is an operator of iPXE", a.ID, v)
		}
	}
	s := bootScript(a, base)
	if len(s) > maxScript {
		return "", errkind.New(errkind.Refused, "boot attempt %s: the script has %d bytes and may have %d", a.ID, len(s), maxScript)
	}
	return s, nil
}

func bootScript(a boot.Attempt, base string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	kernel := []string{"kernel --name kernel", base + a.Kernel}
	kernel = append(kernel, a.Args...)
	for i := range a.Initrds {
		kernel = append(kernel, fmt.Sprintf("initrd=initrd%d", i))
	}
	line("#!ipxe")
	line("echo ironrail: node %s, boot attempt %s", plainText(a.Node), a.ID)
	line("set tries:int32 0")
	line(":again")
	line("imgfree")
	line("%s || goto wait", strings.Join(kernel, " "))
	for i, p := range a.Initrds {
		line("initrd --name initrd%d %s%s || goto wait", i, base, p)
	}
	line("boot kernel || goto wait")
	line(":wait")
	line("inc tries")
	line("echo ironrail: the installer could not be loaded, try ${tries} of %d", tries)
	line("iseq ${tries} %d && goto give_up ||", tries)
	line("sleep %d", tryAgain)
	line("goto again")
	line(":give_up")
	line("echo ironrail: giving up, going to the next boot device")
	line("imgfree")
	line("exit 1")
	return b.String()
}

// DiskScript returns the script that sends a node without an open attempt to its
// disk. UEFI takes an error as "next boot option", and would stop in its menu
// after a success. A BIOS is given its first disk directly, since some never go
// on from a network card; where there is no such disk it is left to the BIOS.
func DiskScript(node string) string {
	return "#!ipxe\n" +
		"echo ironrail: node " + plainText(node) + " has no open boot attempt, going to its disk\n" +
		"iseq ${platform} efi && goto next ||\n" +
		"sanboot --no-describe --drive 0x80 || goto next\n" +
		":next\n" +
		"exit 1\n"
}

// RefusalScript returns the script that says why nothing is booted, waits for the
// reason to be read, and goes to the next boot device.
func RefusalScript(reason string) string {
	return "#!ipxe\n" +
		"echo ironrail: this node is not booted:\n" +
		"echo " + plainText(reason) + "\n" +
		fmt.Sprintf("sleep %d\n", readTime) +
		"exit 1\n"
}

// isName accepts names of attempts.
func isName(s string) bool {
	return s != "" && len(s) <= 255 && strings.IndexFunc(s, func(r rune) bool { return !isWord(r) }) < 0
}

func isWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '-' || r == '_'
}

// isPath accepts URL paths that need no escape.
func isPath(s string) bool {
	if !strings.HasPrefix(s, "/") || len(s) > 1024 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !isWord(r) && !strings.ContainsRune("/~+=@:,%", r) }) < 0
}

func isURL(s string) bool {
	rest, ok := strings.CutPrefix(s, "http://")
	return ok && rest != "" && strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) && !strings.ContainsRune(":[]", r) }) < 0
}

// isArg accepts one kernel argument: visible ASCII, no expansion, and not a word
// that iPXE takes for an operator or the begin of a comment.
func isArg(s string) bool {
	if s == "" || len(s) > 1024 || s == "||" || s == "&&" || s == ";" || s[0] == '#' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '$' || r == '\\' }) < 0
}

// plainText makes text of unknown origin fit for an echo line: what iPXE could
// interpret becomes a question mark. At most 200 characters are kept.
func plainText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() >= 200 {
			break
		}
		if isWord(r) || strings.ContainsRune(" ,:/()'=+@%", r) {
			b.WriteRune(r)
		} else {
			b.WriteByte('?')
		}
	}
	return b.String()
}
