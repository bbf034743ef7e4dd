// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot/loader"
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
	case r.grub != "":
		what = r.grub
	case r.loader:
		what = "the first loader"
	}
	d := Diagnosis{Part: "Secure Boot", Cause: "Secure Boot refuses " + what, Evidence: []string{fmt.Sprintf("its console says %q", line)}}
	switch {
	case n.Hardware == nil: // of a node that is wiped and leaves the site
		d.Action = fmt.Sprintf("Switch Secure Boot off in the firmware of %s.", n.Name)
	case !n.Hardware.SecureBoot:
		d.Action = fmt.Sprintf("Switch Secure Boot off in the firmware of %s, or set secure_boot = true in hardware.%s: signed programs are offered then.", n.Name, n.Hardware.Name)
	case r.kernel:
		d.Action = "Build the image again (`ironrail image build`) with a kernel package of Debian's own archive: shim and GRUB take kernels that Debian has signed."
	default:
		d.Action = doKeys(n)
	}
	return d
}

// doKeys is what to do about firmware that does not take shim: Microsoft's
// authorities for programs of others are not in db of every server, and a revoked shim is
// refused whoever has signed it.
func doKeys(n *inventory.Node) string {
	return fmt.Sprintf("In the setup of %s restore the factory keys of Secure Boot, with Microsoft's UEFI CA for third parties (2011 or 2023: Debian's shim is signed by both) in db; where it is there, a newer shim is needed, since the firmware revokes this one: `ironrail image build`.", n.Name)
}

// stoppedSigned is the diagnosis of a node that fetched shim, or the GRUB behind it as well, and
// nothing more.
func (r reached) stoppedSigned(n *inventory.Node) Diagnosis {
	d := Diagnosis{Part: "Secure Boot", Action: "Read the serial console of " + n.Name + ": who refused it says so there. " + doKeys(n)}
	if r.grub != "" {
		d.Cause = fmt.Sprintf("the node fetched %s, which never asked for its configuration: shim may refuse it, or it has no network", r.grub)
	} else {
		d.Cause = fmt.Sprintf("the node fetched %s, which never asked for %s: the firmware refuses it, as Secure Boot does where db has no key for it", r.shim, loader.Behind(r.shim))
	}
	return d
}

// secureBootOf is what a node shows of Secure Boot, in words.
func secureBootOf(s *wire.SecureBoot) string {
	words := map[string]string{
		wire.SecureBootOn: "Secure Boot is on", wire.SecureBootOff: "Secure Boot is off in the firmware",
		wire.SecureBootSetup:  "Secure Boot is off: the firmware is in setup mode, without a platform key",
		wire.SecureBootAbsent: "the firmware has no Secure Boot",
	}
	if s == nil || words[s.State] == "" {
		return "Secure Boot is not readable: the kernel shows no variables of the firmware"
	}
	text := words[s.State]
	switch s.Lockdown {
	case "":
		text += "; whether the kernel is locked down is not readable"
	case "none":
		text += "; the kernel is not locked down"
	default:
		text += "; the kernel is locked down (" + s.Lockdown + ")"
	}
	if len(s.Authorities) > 0 {
		text += "; db has " + strings.Join(s.Authorities, ", ")
	}
	if s.Damaged {
		text += "; db could not be read to its end"
	}
	return text
}

// compareSecureBoot holds what a node shows against its hardware block. What it does not
// show is no fault.
func compareSecureBoot(n *inventory.Node, s *wire.SecureBoot) *Fault {
	if !n.Hardware.SecureBoot || s == nil || s.State == "" || s.State == wire.SecureBootOn {
		return nil
	}
	return &Fault{"Secure Boot", fmt.Sprintf("%s; hardware.%s says secure_boot = true", secureBootOf(s), n.Hardware.Name),
		"Switch Secure Boot on in the firmware's setup, with its factory keys; or set secure_boot = false in the hardware block."}
}

// compareModuleKey looks whether the kernel of a node takes the modules of its drivers, which are
// signed with the site's key: whether firmware or shim has the certificate. What it does not
// show is no fault.
func (s *Stage) compareModuleKey(n *inventory.Node, shown *wire.SecureBoot) *Fault {
	by := s.w.Signer
	if by == nil || shown == nil || shown.State != wire.SecureBootOn || len(shown.Keys) == 0 || shown.Damaged || slices.Contains(shown.Keys, by.Fingerprint()) || !kinds.NeedSigned(n) {
		return nil
	}
	return &Fault{"Secure Boot", fmt.Sprintf("the certificate %q of this site (SHA-256 %s) is neither in db nor in the MOK list: the kernel would refuse the modules of its drivers", by.Name(), by.Fingerprint()),
		fmt.Sprintf("Enrol it in the setup of %s's firmware, as one more certificate in db (`ironrail state keys --certificate der > modules.cer`); then apply again.", n.Name)}
}

// noteSecureBoot says how a node booted whose hardware block asks for Secure Boot, and
// names one that has it on without being asked.
func noteSecureBoot(run stage.Run, n *inventory.Node, s *wire.SecureBoot) {
	switch {
	case n.Hardware.SecureBoot:
		run.Emit(event.Event{Type: event.Evidence, Text: secureBootOf(s)})
	case s != nil && s.State == wire.SecureBootOn:
		run.Emit(event.Event{Type: event.Evidence, Text: fmt.Sprintf("%s, and hardware.%s does not say secure_boot = true", secureBootOf(s), n.Hardware.Name)})
	}
}
