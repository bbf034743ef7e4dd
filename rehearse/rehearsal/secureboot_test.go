// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// TestSecureBoot: nodes whose firmware starts signed programs alone are brought up by shim and
// GRUB, by PXE and by HTTP; what they show of Secure Boot is said, in the ramdisk and on the
// installed system.
func TestSecureBoot(t *testing.T) {
	t.Parallel()
	for boot, file := range map[inventory.Firmware]string{inventory.BootUEFI: " and shimx64.efi", inventory.BootUEFIHTTP: "/loader/shimx64.efi"} {
		var said []string
		sum := rehearsedWith(t, small(t, 2, `boot       = "uefi"`, `boot = "`+string(boot)+"\"\n  secure_boot = true"),
			rehearsal.Options{Seed: 7, OnEvent: func(e event.Event) { said = append(said, e.Text) }})
		if len(sum.Accepted) != 2 {
			t.Errorf("%s: %d nodes are accepted", boot, len(sum.Accepted))
		}
		if !slices.ContainsFunc(said, func(text string) bool {
			return strings.HasPrefix(text, `the BMC shows Secure Boot: at the last boot "Enabled", switched on "true"`)
		}) {
			t.Errorf("%s: nothing is said of what the BMC shows", boot)
		}
		n, of := 0, "Secure Boot is on; the kernel is locked down (integrity)"
		for _, text := range said {
			if strings.Contains(text, of) {
				n++
			}
		}
		if n != 4 || slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, "snponly") }) || !slices.ContainsFunc(said, func(text string) bool { return strings.HasSuffix(text, file) }) {
			t.Errorf("%s: %q is said %d times, want 4; in\n%s", boot, of, n, strings.Join(said, "\n"))
		}
	}
}

// TestSignedModules: the modules of a stack come signed to nodes with Secure Boot, whose kernel
// refuses others; no node has DKMS, or headers to build with.
func TestSignedModules(t *testing.T) {
	t.Parallel()
	inv := otherExample(t, "mi300x-roce", `boot       = "uefi"`, "boot       = \"uefi\"\n  secure_boot = true")
	var said []string
	sum := rehearsedWith(t, inv, rehearsal.Options{Seed: 7, OnEvent: func(e event.Event) { said = append(said, e.Text) }})
	if len(sum.Accepted) != len(inv.Nodes) {
		t.Errorf("%d of %d nodes are accepted: %+v", len(sum.Accepted), len(inv.Nodes), sum.Quarantined)
	}
	count := func(of string) (n int) {
		for _, text := range said {
			if strings.Contains(text, of) {
				n++
			}
		}
		return n
	}
	const enrolled = "of this site for kernel modules: it is to be in db after the next POST"
	if n := count(enrolled); n != len(inv.Nodes) {
		t.Errorf("%q is said %d times", enrolled, n)
	}
	if in := ", ironrail modules of mi300x"; count(in) != 2*len(inv.Nodes) { // in the ramdisk, and on the installed system
		t.Errorf("db is said to have %q %d times\n%s", in, count(in), strings.Join(said, "\n"))
	}
	const of = "kernel modules come built and signed"
	if n := count(of); n != len(inv.Nodes) || slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, "kernel modules are built") }) {
		t.Errorf("%q is said %d times; in\n%s", of, count(of), strings.Join(said, "\n"))
	}
}

// TestEnrolledAtConsole: nodes whose BMCs speak IPMI get the certificate from MokManager, which is
// answered at their consoles, before anything is erased; they load the signed modules then. The
// password stands in no event.
func TestEnrolledAtConsole(t *testing.T) {
	t.Parallel()
	inv := otherExample(t, "mi300x-roce", `boot       = "uefi"`, "boot       = \"uefi\"\n  secure_boot = true", `protocol = "redfish"`, `protocol = "ipmi"`, `  tls      = "pin-first-seen"`, "")
	var mu sync.Mutex
	var said []string
	steps := map[string]int{} // when they ended
	sum := rehearsedWith(t, inv, rehearsal.Options{Seed: 7, OnEvent: func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, e.Text)
		if e.Type == event.StepDone {
			steps[string(e.Step)] = len(said)
		}
	}})
	if len(sum.Accepted) != len(inv.Nodes) {
		t.Errorf("%d of %d nodes are accepted: %+v", len(sum.Accepted), len(inv.Nodes), sum.Quarantined)
	}
	n := 0
	for _, text := range said {
		if strings.Contains(text, "MokManager has enrolled it, at the console of") {
			n++
		}
	}
	if n != len(inv.Nodes) {
		t.Errorf("%d of %d nodes are said to have the certificate\n%s", n, len(inv.Nodes), strings.Join(said, "\n"))
	}
	for _, node := range inv.Nodes {
		mok, inspect := steps[node.Name+"/install.mok"], steps[node.Name+"/install.inspect"]
		if mok == 0 || inspect <= mok {
			t.Errorf("%s: the certificate is enrolled at %d, and the node inspected at %d", node.Name, mok, inspect)
		}
	}
}
