// SPDX-License-Identifier: Apache-2.0

package firmware_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// TestBootARM64: with processors of arm64 shim and GRUB load the ramdisk from the real
// boot services, also after an answer that was none.
func TestBootARM64(t *testing.T) {
	for _, how := range []inventory.Firmware{inventory.BootUEFI, inventory.BootUEFIHTTP} {
		for _, fails := range []int{0, 2} {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, 1, 200_000)
				defer s.close()
				left := fails
				s.busy = func(w http.ResponseWriter, _ *http.Request) bool {
					if left--; left < 0 {
						return false
					}
					http.Error(w, "restarting", http.StatusServiceUnavailable)
					return true
				}
				s.arm("n0")
				cfg, n := s.config(0, how)
				cfg.Arch = inventory.ARM64
				s.powerOn(cfg, n)
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				if len(n.kernels) != 1 {
					t.Fatalf("%s: %d kernels run\n%s%+v", how, len(n.kernels), &n.console, s.seen)
				}
				k := n.kernels[0]
				if w, err := k.Boot(); err != nil || w.Attempt != "n0-a" || k.Cmdline != "panic=60" || k.KernelSize != 6000 || k.Address != netip.PrefixFrom(addressOf(0), 16) {
					t.Errorf("%s: booted %+v, %q of %d, %s: %v", how, w, k.Cmdline, k.KernelSize, k.Address, err)
				}
				if said := n.console.String(); strings.Contains(said, "iPXE") || strings.Contains(said, "try 2 of 60") != (fails == 2) {
					t.Errorf("%s, %d failures:\n%s", how, fails, said)
				}
				if fails == 0 && s.saw("refused")+s.saw("failed") > 0 {
					t.Errorf("seen by the services: %+v", s.seen)
				}
			})
		}
	}
}

// TestDiskARM64: a node without an attempt ends on its disk, and so does one whose kernel
// is not to be had for five minutes.
func TestDiskARM64(t *testing.T) {
	for _, attempt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, 1, 2000)
			defer s.close()
			s.busy = func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "broken", http.StatusInternalServerError)
				return true
			}
			if attempt {
				s.arm("n0")
			}
			cfg, n := s.config(0, inventory.BootUEFI)
			cfg.Arch, n.hasDisk = inventory.ARM64, true
			if err := n.chassis.SetOverride(chassis.Override{Enabled: "Once", Target: chassis.BootPXE, UEFI: true}); err != nil {
				t.Fatal(err)
			}
			s.powerOn(cfg, n)
			time.Sleep(15 * time.Minute)
			synctest.Wait()
			if said := n.console.String(); n.disks != 1 || strings.Contains(said, "giving up") != attempt {
				t.Errorf("with an attempt: %v; %d disks\n%s", attempt, n.disks, said)
			}
		})
	}
}

// TestBootSecurely: with Secure Boot shim and GRUB load the ramdisk, and firmware refuses
// the iPXE that is offered to a node of which the files do not say so.
func TestBootSecurely(t *testing.T) {
	for _, how := range []inventory.Firmware{inventory.BootUEFI, inventory.BootUEFIHTTP} {
		for _, declared := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, 1, 200_000)
				defer s.close()
				s.clients[0].SecureBoot = declared
				s.arm("n0")
				cfg, n := s.config(0, how)
				cfg.SecureBoot = true
				s.powerOn(cfg, n)
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				said := n.console.String()
				if booted := len(n.kernels) == 1; booted != declared || strings.Contains(said, "Access Denied") == declared || strings.Contains(said, "iPXE") {
					t.Errorf("%s, declared %v: %d kernels\n%s%+v", how, declared, len(n.kernels), said, s.seen)
				}
			})
		}
	}
}
