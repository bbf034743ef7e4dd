// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// refusal is how one program says on the console that Secure Boot does not let it go
// on.
type refusal struct {
	all []string // what the line holds, in small letters
	// early: the same line is also printed about something that is not needed, such as
	// a font, and the boot goes on.
	early bool
}

// bootRefusals returns the texts, by who prints them.
func bootRefusals() []refusal {
	return []refusal{
		{all: []string{"bdsdxe: failed to load", "access denied"}},      // EDK2's boot manager: seen with OVMF and an unsigned snponly.efi
		{all: []string{"bdsdxe: failed to load", "security violation"}}, // the same with EFI_SECURITY_VIOLATION (UEFI 2.10, appendix D)
		{all: []string{"signature is not allowed by db"}},               // EDK2's DxeImageVerificationLib, builds with debug output
		{all: []string{"verification failed", "security violation"}},    // shim: "Verification failed: (0x1A) Security Violation"
		{all: []string{"security policy violation"}},                    // shim: "SBAT self-check failed: Security Policy Violation"
		{all: []string{"secure boot violation"}},                        // the box of AMI's and Phoenix' firmware
		{all: []string{"invalid signature detected"}},                   // the text in that box
		{all: []string{"bad shim signature"}},                           // GRUB, of the kernel
		{all: []string{"has invalid signature"}},                        // GRUB of Debian before 2.06, of the kernel
		{all: []string{"prohibited by secure boot policy"}, early: true},
	}
}

// refusedBySecureBoot finds the last line of a console that says so; "" for none. A
// node that has fetched its whole ramdisk was not stopped by what is said early.
func refusedBySecureBoot(console []string, r reached) string {
	for i := len(console) - 1; i >= 0; i-- {
		line := strings.ToLower(console[i])
		for _, x := range bootRefusals() {
			if x.in(line) && !(x.early && r.initrdEnd) {
				return strings.TrimSpace(console[i])
			}
		}
	}
	return ""
}

func (x refusal) in(line string) bool {
	for _, text := range x.all {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}

// secureBoot is the diagnosis of a refusal that the console says.
func (r reached) secureBoot(n *inventory.Node, line string) Diagnosis {
	what := "what it is to boot"
	switch {
	case r.kernel:
		what = "the install kernel"
	case r.loader:
		what = "the first loader"
	}
	return Diagnosis{Part: "Secure Boot", Cause: "Secure Boot refuses " + what,
		Action:   fmt.Sprintf("Switch Secure Boot off in the firmware of %s: neither loader nor install kernel is signed with a key that its firmware trusts.", n.Name),
		Evidence: []string{fmt.Sprintf("its console says %q", line)}}
}
