// SPDX-License-Identifier: Apache-2.0

package bmc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

// One piece of work against each fault that the simulated services know: nothing
// of it reaches the caller.
func TestRedfishQuirks(t *testing.T) {
	t.Parallel()
	quirks := map[string]func(*redfish.Quirks){
		"as specified":        func(q *redfish.Quirks) { *q = redfish.Quirks{} },
		"etag required":       func(q *redfish.Quirks) { *q = redfish.Quirks{RequireETag: true} },
		"weak etags":          func(q *redfish.Quirks) { *q = redfish.Quirks{WeakETag: true} },
		"weak and required":   func(q *redfish.Quirks) { *q = redfish.Quirks{WeakETag: true, RequireETag: true} },
		"401 now and then":    func(q *redfish.Quirks) { *q = redfish.Quirks{Flaky401: 3} },
		"members null":        func(q *redfish.Quirks) { *q = redfish.Quirks{MembersNull: true} },
		"one session":         func(q *redfish.Quirks) { *q = redfish.Quirks{SessionLimit: 1} },
		"sessions end soon":   func(q *redfish.Quirks) { *q = redfish.Quirks{SessionTimeout: time.Second} },
		"not ready":           func(q *redfish.Quirks) { *q = redfish.Quirks{NotReady: 50 * time.Second} },
		"not ready, requests": func(q *redfish.Quirks) { *q = redfish.Quirks{NotReadyRequests: 4} },
		"slow reset":          func(q *redfish.Quirks) { *q = redfish.Quirks{SlowReset: 4 * time.Second} },
		"trailing slash":      func(q *redfish.Quirks) { *q = redfish.Quirks{TrailingSlash: true} },
		"no sessions":         func(q *redfish.Quirks) { *q = redfish.Quirks{NoSessionService: true} },
		"full boot object":    func(q *redfish.Quirks) { *q = redfish.Quirks{BootNeedsFullObject: true} },
		"mode reverts":        func(q *redfish.Quirks) { *q = redfish.Quirks{BootModeReverts: true} },
		"busy in POST":        func(q *redfish.Quirks) { *q = redfish.Quirks{BootBusyInPOST: true} },
		"more systems": func(q *redfish.Quirks) {
			*q = redfish.Quirks{ExtraSystems: []string{"HGX_Baseboard_0"}, ExtraManagers: []string{"HGX_BMC_0", "HGX_FabricManager_0"}, ExtraChassis: []string{"HGX_Chassis_0"}, ExtraFirst: true}
		},
	}
	for name, q := range quirks {
		for _, maker := range []string{"openbmc", "supermicro"} {
			t.Run(name+"/"+maker, func(t *testing.T) {
				t.Parallel()
				subject{name: name, protocol: bmc.Redfish, maker: maker, quirks: q}.run(t, work)
			})
		}
	}
}

// work identifies a node, sets its boot device and powers it twice.
func work(l *lab) {
	s := l.open()
	id, err := s.Identity(l.Context())
	if err != nil || id.Serial() != rigSerial || len(id.Gaps) > 0 {
		l.Errorf("identity: %+v, %v", id, err)
	}
	for n := 1; n <= 2; n++ {
		if out, err := s.SetBoot(l.Context(), bmc.Boot{Device: bmc.PXE, Once: true, UEFI: true}); err != nil || out.Verdict != bmc.Verified {
			l.Errorf("boot: %+v, %v", out, err)
		}
		if out, err := s.SetPower(l.Context(), bmc.Cycle); err != nil || out.Verdict != bmc.Verified {
			l.Errorf("cycle: %+v, %v", out, err)
		}
		time.Sleep(10 * time.Second)
		if got := (chassis.Counts{PowerOns: n, PowerOffs: n - 1}); l.c.Counters() != got {
			l.Errorf("after %d cycles: %+v", n, l.c.Counters())
		}
	}
	if err := s.Close(l.Context()); err != nil {
		l.Error(err)
	}
}

// able runs body with every maker's BMC behind a pool.
func able(t *testing.T, body func(l *lab, h *bmc.Handle)) {
	t.Parallel()
	for _, s := range subjects {
		if s.protocol != bmc.Redfish {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, func(l *lab) {
				p := bmc.NewPool(l.opts)
				defer p.Close(l.Context())
				body(l, p.Handle(l.target))
			})
		})
	}
}

func TestRedfishFirmware(t *testing.T) {
	able(t, func(l *lab, h *bmc.Handle) {
		find := func(all []bmc.Component, id string) string {
			for _, c := range all {
				if c.ID == id {
					return c.Version
				}
			}
			return ""
		}
		err := bmc.Use(l.Context(), h, "list firmware", func(b bmc.Components) error {
			got, err := b.Components(l.Context())
			for _, c := range l.c.Components() {
				if find(got, c.ID) != c.Version {
					l.Errorf("%s: %q, want %q", c.ID, find(got, c.ID), c.Version)
				}
			}
			return err
		})
		if err != nil {
			l.Error(err)
		}
		var id string
		for _, c := range l.c.Components() {
			if c.Updateable {
				id = c.ID
			}
		}
		err = bmc.Use(l.Context(), h, "update firmware", func(b bmc.Updater) error {
			start := time.Now()
			out, err := b.Update(l.Context(), bmc.Update{Image: "http://10.77.0.1/fw/image-9.9.9.bin", IDs: []string{id}})
			if out.Sent != 1 || out.Verdict != bmc.Unverifiable || time.Since(start) < 30*time.Second {
				l.Errorf("%+v after %s", out, time.Since(start))
			}
			return err
		})
		if err != nil {
			l.Error(err)
		}
	})
}

func TestRedfishBIOS(t *testing.T) {
	able(t, func(l *lab, h *bmc.Handle) {
		use := func(f func(b bmc.BIOS) error) error { return bmc.Use(l.Context(), h, "BIOS settings", f) }
		var name, old string
		err := use(func(b bmc.BIOS) error {
			current, pending, err := b.BIOS(l.Context())
			if len(current) == 0 || len(pending) > 0 {
				l.Errorf("current %v, pending %v", current, pending)
			}
			for k, v := range current {
				if v == "Enabled" || v == "Enable" {
					name, old = k, v
				}
			}
			return err
		})
		if err != nil || name == "" {
			l.Fatalf("no setting to change: %v", err)
		}
		want := strings.Replace(strings.Replace(old, "Enabled", "Disabled", 1), "Enable", "Disable", 1)
		err = use(func(b bmc.BIOS) error {
			out, err := b.SetBIOS(l.Context(), map[string]string{name: want})
			if err != nil || out.Verdict != bmc.Verified || out.Sent < 1 {
				l.Errorf("%s=%s: %+v, %v", name, want, out, err)
			}
			if out, err := b.SetBIOS(l.Context(), map[string]string{name: want}); err != nil || out.Sent != 0 {
				l.Errorf("a second time: %+v, %v", out, err)
			}
			_, err = b.SetBIOS(l.Context(), map[string]string{"NoSuchSetting": "1"})
			if errkind.Of(err) != errkind.Unsupported {
				l.Errorf("unknown setting: %v", err)
			}
			return nil
		})
		if err != nil {
			l.Error(err)
		}
		l.press(chassis.PressOn)
		_ = use(func(b bmc.BIOS) error {
			current, pending, err := b.BIOS(l.Context())
			if err != nil || current[name] != want || len(pending) > 0 {
				l.Errorf("after POST: %s=%s, pending %v, %v", name, current[name], pending, err)
			}
			return nil
		})
	})
}

func TestRedfishBIOSNotKept(t *testing.T) {
	subjects[1].run(t, func(l *lab) {
		l.c.LoseWrites("bios")
		p := bmc.NewPool(l.opts)
		defer p.Close(l.Context())
		err := bmc.Use(l.Context(), p.Handle(l.target), "BIOS settings", func(b bmc.BIOS) error {
			current, _, _ := b.BIOS(l.Context())
			for k := range current {
				out, err := b.SetBIOS(l.Context(), map[string]string{k: current[k] + "1"})
				if out.Verdict == bmc.Verified {
					l.Errorf("%+v", out)
				}
				return err
			}
			return nil
		})
		if k := errkind.Of(err); k != errkind.Refused || err == nil {
			l.Errorf("got %v", err)
		}
	})
}

func TestRedfishVirtualMedia(t *testing.T) {
	able(t, func(l *lab, h *bmc.Handle) {
		err := bmc.Use(l.Context(), h, "virtual media", func(b bmc.VirtualMedia) error {
			for _, url := range []string{"http://10.77.0.1/a.iso", "http://10.77.0.1/b.iso"} {
				if out, err := b.InsertMedia(l.Context(), url); err != nil || out.Verdict != bmc.Verified {
					l.Errorf("insert: %+v, %v", out, err)
				}
			}
			for range 2 {
				if out, err := b.EjectMedia(l.Context()); err != nil || out.Verdict != bmc.Verified {
					l.Errorf("eject: %+v, %v", out, err)
				}
			}
			return nil
		})
		if err != nil {
			l.Error(err)
		}
	})
}

func TestRedfishAccounts(t *testing.T) {
	const next = "canary-next-5c!Aa0"
	able(t, func(l *lab, h *bmc.Handle) {
		err := bmc.Use(l.Context(), h, "accounts", func(b bmc.Accounts) error {
			got, err := b.Accounts(l.Context())
			if err != nil || len(got) != 1 || got[0].Username != rigUser || !got[0].Enabled {
				l.Errorf("%+v, %v", got, err)
			}
			out, err := b.AddAccount(l.Context(), bmc.Account{Username: "second", Role: "Operator"}, secret.NewValue(next))
			if err != nil || out.Verdict != bmc.Verified {
				l.Errorf("add: %+v, %v", out, err)
			}
			out, err = b.SetPassword(l.Context(), rigUser, secret.NewValue(next))
			if err != nil || out.Verdict != bmc.Verified {
				l.Errorf("set password: %+v, %v", out, err)
			}
			return nil
		})
		if err != nil {
			l.Error(err)
		}
		if a, err := l.c.Login(rigUser, next); err != nil || a.Role != "Administrator" {
			l.Errorf("the new password: %+v, %v", a, err)
		}
		if _, err := h.PowerState(l.Context()); err != nil {
			l.Errorf("the session after the change: %v", err)
		}
	})
}

// A BMC's refusal of a password may repeat it; the error does not.
func TestRedfishPasswordRules(t *testing.T) {
	subjects[1].run(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		defer p.Close(l.Context())
		err := bmc.Use(l.Context(), p.Handle(l.target), "set password", func(b bmc.Accounts) error {
			_, err := b.SetPassword(l.Context(), rigUser, secret.NewValue("canary"))
			return err
		})
		if errkind.Of(err) != errkind.Refused || strings.Contains(err.Error(), "canary") || errkind.Action(err) == "" {
			l.Errorf("a password that is too short: %v", err)
		}
	})
}

// IPMI has none of these; the caller is told what to do.
func TestUseUnsupported(t *testing.T) {
	subjects[0].run(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		defer p.Close(l.Context())
		err := bmc.Use(l.Context(), p.Handle(l.target), "insert an image", func(bmc.VirtualMedia) error { l.Error("was called"); return nil })
		if errkind.Of(err) != errkind.Unsupported || errkind.Action(err) == "" {
			l.Errorf("got %v", err)
		}
	})
}

func TestRedfishLockedAccount(t *testing.T) {
	able(t, func(l *lab, h *bmc.Handle) {
		for range 6 {
			_, _ = l.c.Login(rigUser, "wrong")
		}
		for range 3 {
			_, err := h.PowerState(l.Context())
			if !errors.Is(err, bmc.ErrLocked) || errkind.Of(err) != errkind.Auth || !strings.Contains(errkind.Action(err), "unlock") {
				l.Fatalf("got %v (%s)", err, errkind.Action(err))
			}
			l.clean(err)
		}
	})
}

// The certificate of the first contact is told, and another one is refused by a
// later run that was given it.
func TestRedfishPin(t *testing.T) {
	subjects[1].run(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		h := p.Handle(l.target)
		if h.Certificate() != "" {
			l.Error("a certificate before the first contact")
		}
		if _, err := h.PowerState(l.Context()); err != nil {
			l.Fatal(err)
		}
		pin := h.Certificate()
		known := l.target
		known.Pinned = pin
		if _, err := p.Handle(known).PowerState(l.Context()); err != nil || len(pin) != 64 {
			l.Errorf("with its own pin %q: %v", pin, err)
		}
		_ = p.Close(l.Context())
		known.Pinned = strings.Repeat("ab", 32)
		_, err := bmc.Open(l.Context(), known, l.opts)
		if !errors.Is(err, bmc.ErrCertificate) || errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), pin) || !strings.Contains(err.Error(), known.Pinned) {
			l.Errorf("got %v", err)
		}
	})
}

// An interrupted wait ends at once and gives its session back.
func TestRedfishInterrupted(t *testing.T) {
	subjects[1].run(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		h := p.Handle(l.target)
		l.press(chassis.PressOn)
		ctx, cancel := context.WithTimeout(l.Context(), time.Second)
		defer cancel()
		out, err := h.SetPower(ctx, bmc.SoftOff)
		if errkind.Of(err) != errkind.Timeout || out.Sent != 1 {
			l.Errorf("%+v, %v", out, err)
		}
		if err := p.Close(l.Context()); err != nil {
			l.Error(err)
		}
	})
}
