// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
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

// TestSecureBootOfUbuntu: nodes of another distribution are brought up by its own shim and GRUB, from
// its folder, by PXE and by HTTP. Tests between nodes of RHEL need other packages than the site has.
func TestSecureBootOfUbuntu(t *testing.T) {
	t.Parallel()
	ubuntu := []string{`image "debian"`, `image "ubuntu"`, `release  = "bookworm"`, `release  = "noble"`, `kernel   = "linux-image-amd64"`, `kernel   = "linux-image-generic"`}
	for name, c := range map[string]struct {
		boot  inventory.Firmware
		file  string
		nodes int // that are accepted
		edits []string
	}{
		"PXE":  {inventory.BootUEFI, " and ubuntu/shimx64.efi", 2, ubuntu},
		"HTTP": {inventory.BootUEFIHTTP, "/loader/ubuntu/shimx64.efi", 2, ubuntu},
		"RHEL": {inventory.BootUEFI, " and rhel/shimx64.efi", 0, []string{`image "debian"`, `image "rhel"`, `release  = "bookworm"`, `release  = "9"`, "  kernel   = \"linux-image-amd64\"\n", ""}},
	} {
		var said []string
		sum := rehearsedWith(t, small(t, 2, append([]string{`boot       = "uefi"`, `boot = "` + string(c.boot) + "\"\n  secure_boot = true"}, c.edits...)...),
			rehearsal.Options{Seed: 7, OnEvent: func(e event.Event) { said = append(said, e.Text) }})
		on := 0
		for _, text := range said {
			if strings.HasPrefix(text, "Secure Boot is on; the kernel is locked down (integrity)") {
				on++
			}
		}
		if len(sum.Accepted) != c.nodes || on != 4 || !slices.ContainsFunc(said, func(text string) bool { return strings.HasSuffix(text, c.file) }) {
			t.Errorf("%s: %d nodes are accepted; quarantined %+v; said is\n%.9000s", name, len(sum.Accepted), sum.Quarantined, strings.Join(said[max(0, len(said)-40):], "\n"))
		}
	}
}

// TestSecureBootInMemory: nodes with their system in memory are brought up with Secure Boot, and no
// disk is written.
func TestSecureBootInMemory(t *testing.T) {
	t.Parallel()
	inv := inMemory(small(t, 2, `boot       = "uefi"`, "boot = \"uefi\"\n  secure_boot = true"))
	on := 0
	sum := rehearsedWith(t, inv, rehearsal.Options{Seed: 7, Then: func(_ context.Context, r *rehearsal.Rehearsal) error {
		return blankDisks(inv, rehearsaltest.Of(r).World)
	}, OnEvent: func(e event.Event) {
		if strings.HasPrefix(e.Text, "Secure Boot is on; the kernel is locked down (integrity)") {
			on++
		}
	}})
	if len(sum.Accepted) != 2 || on != 4 {
		t.Errorf("%d nodes are accepted, and Secure Boot is said to be on %d times: %+v", len(sum.Accepted), on, sum.Quarantined)
	}
}

// TestSignedModules: the modules of a stack come signed to nodes with Secure Boot, whose kernel
// refuses others; no node has DKMS, or headers to build with.
func TestSignedModules(t *testing.T) {
	t.Parallel()
	inv := secured(t, "redfish")
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

// secured is a site whose nodes boot with Secure Boot and need the certificate for kernel modules.
func secured(t *testing.T, protocol string) *inventory.Inventory {
	t.Helper()
	words := []string{`boot       = "uefi"`, "boot       = \"uefi\"\n  secure_boot = true"}
	if protocol == "ipmi" {
		words = append(words, `protocol = "redfish"`, `protocol = "ipmi"`, `  tls      = "pin-first-seen"`, "")
	}
	return otherExample(t, "mi300x-roce", words...)
}

// TestSecureBootFaults: firmware with Secure Boot switched off, and firmware that keeps no
// certificate, are named on their nodes and on no other, before anything is erased, whatever the
// BMC shows of them. Sites without either get an error that says so.
func TestSecureBootFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ protocol, fault, cause string }{
		{"redfish", "kind=secure-boot-off,node=r01-u09", "Secure Boot is switched off in the firmware"},
		{"ipmi", "kind=secure-boot-off,node=r01-u09", "the hardware is not what hardware."},
		{"redfish", "kind=module-key-missing,node=r01-u09", "the hardware is not what hardware."},
		{"ipmi", "kind=module-key-missing,node=r01-u09", "the certificate cannot be handed to shim: "},
	} {
		t.Run(tt.protocol+" "+tt.fault, func(t *testing.T) {
			t.Parallel()
			inv := secured(t, tt.protocol)
			erased := ""
			sum := rehearsedWith(t, inv, rehearsal.Options{Seed: 7, Faults: planted(t, tt.fault), OnEvent: func(e event.Event) {
				if e.Step == "r01-u09/install.write" && e.Type == event.StepStarted {
					erased = e.Text
				}
			}})
			if len(sum.Accepted) != len(inv.Nodes)-1 || len(sum.Quarantined) != 1 || !sum.AsExpected() {
				t.Fatalf("%d accepted, quarantined %+v, faults %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Faults, sum.Unexpected)
			}
			if q := sum.Quarantined[0]; q.Node != "r01-u09" || q.Part != "Secure Boot" || !strings.HasPrefix(q.Cause, tt.cause) || erased != "" {
				t.Errorf("%+v; erased: %q", q, erased)
			}
		})
	}
	plain := otherExample(t, "mi300x-roce", `boot       = "uefi"`, "boot       = \"uefi\" ")
	for fault, want := range map[string]string{"kind=secure-boot-off,node=r01-u09": "does not say secure_boot = true", "kind=module-key-missing,node=r01-u09": "needs no certificate for kernel modules"} {
		if _, err := rehearsal.Run(t.Context(), plain, rehearsal.Options{Seed: 7, Faults: planted(t, fault)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", fault, err)
		}
	}
}

// TestEnrolledAtConsole: nodes whose BMCs speak IPMI get the certificate from MokManager, which is
// answered at their consoles, before anything is erased; they load the signed modules then. The
// password stands in no event.
func TestEnrolledAtConsole(t *testing.T) {
	t.Parallel()
	inv := secured(t, "ipmi")
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

// TestDriftOfBMCVLAN: a BMC that tags its frames with another VLAN than when its node was accepted, or with none, is
// named, whether it speaks Redfish or IPMI; one whose files name no VLAN is not asked for it.
func TestDriftOfBMCVLAN(t *testing.T) {
	t.Parallel()
	for protocol, words := range map[string][]string{"redfish": {`protocol = "redfish"`, `protocol = "redfish" `}, "ipmi": {`protocol = "redfish"`, `protocol = "ipmi"`, `  tls      = "pin-first-seen"`, ""}} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			inv := otherExample(t, "mi300x-roce", words...)
			plain := inv.Nodes[0].BMC.Profile
			shared := *plain
			shared.VLAN = 30
			for _, n := range inv.Nodes[1:] {
				n.BMC.Profile = &shared
			}
			var found []drift.Change
			_, err := rehearsal.Run(t.Context(), inv, rehearsal.Options{Seed: 3, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
				l := rehearsaltest.Of(r)
				for i, id := range []int{31, 30, 31, 0} {
					if err := l.World.TagBMC(inv.Nodes[i].Name, id); err != nil {
						return err
					}
				}
				d, err := l.Drift(ctx, observe.DriftOptions{Kinds: []string{wire.ItemNetwork}, BMCs: observe.BMCsAlways})
				found = d.Changes
				return err
			}})
			if err != nil || len(found) != 2 {
				t.Fatal(err, found)
			}
			for i, is := range []string{"VLAN 31", "untagged"} {
				if c := found[i]; c.Node != inv.Nodes[2+i].Name || c.Part != "BMC" || c.Name != "vlan" || c.Was != "VLAN 30" || c.Is != is || !strings.Contains(c.Action, "from the node itself") {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// TestDriftOfSecureBoot: a node in service whose shim has lost the site's certificate is named, and
// one whose Secure Boot was switched off, and whose kernel is not locked down any more.
func TestDriftOfSecureBoot(t *testing.T) {
	t.Parallel()
	inv := secured(t, "ipmi")
	lost, off := inv.Nodes[1].Name, inv.Nodes[2].Name
	var found [][]drift.Change
	_, err := rehearsal.Run(t.Context(), inv, rehearsal.Options{Seed: 3, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		for _, do := range []func() error{func() error { return nil }, func() error { return l.World.DropKeys(lost) }, func() error { return l.World.DisableSecureBoot(off) }} {
			if err := do(); err != nil {
				return err
			}
			d, err := l.Drift(ctx, observe.DriftOptions{Kinds: []string{wire.ItemSecureBoot}, BMCs: observe.BMCsNever})
			if err != nil || len(d.Unknown) > 0 {
				return fmt.Errorf("unknown %+v: %w", d.Unknown, err)
			}
			found = append(found, d.Changes)
		}
		return nil
	}})
	if err != nil || len(found) != 3 || len(found[0]) != 0 {
		t.Fatal(err, found)
	}
	if c := found[1]; len(c) != 1 || c[0].Node != lost || !strings.HasPrefix(c[0].Part, "certificate ") || c[0].Was != "ironrail modules of mi300x" || c[0].Is != "absent" || !strings.Contains(c[0].Action, "ironrail rebuild "+lost) {
		t.Errorf("a certificate that is lost: %+v", c)
	}
	if c := found[2][1:]; len(c) != 2 || c[0].Node != off || c[0].Name != "lockdown" || c[0].Is != "none" || c[1].Name != "state" || c[1].Was != wire.SecureBootOn || c[1].Is != wire.SecureBootOff {
		t.Errorf("Secure Boot that was switched off: %+v", c)
	}
}
