// SPDX-License-Identifier: Apache-2.0

package bmc_test

import (
	"context"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// site is a service of a site's own.
var site = subject{name: "rpc", protocol: bmc.RPC}

// TestRPCBoot: every boot device arrives, and none is claimed to be kept.
func TestRPCBoot(t *testing.T) {
	t.Parallel()
	site.run(t, func(l *lab) {
		s := l.open()
		for _, b := range []struct {
			ask  bmc.Boot
			want chassis.Override
		}{
			{bmc.Boot{Device: bmc.PXE, Once: true, UEFI: true}, chassis.Override{Enabled: "Once", Target: chassis.BootPXE, UEFI: true}},
			{bmc.Boot{Device: bmc.Disk, UEFI: true}, chassis.Override{Enabled: "Continuous", Target: chassis.BootHDD, UEFI: true}},
			{bmc.Boot{Device: bmc.HTTP, Once: true, UEFI: true}, chassis.Override{Enabled: "Once", Target: chassis.BootUEFIHTTP, UEFI: true}},
			{bmc.Boot{Device: bmc.PXE, Once: true}, chassis.Override{Enabled: "Once", Target: chassis.BootPXE}},
			{bmc.Boot{}, chassis.Override{Enabled: "Disabled", Target: chassis.BootNone}},
		} {
			out, err := s.SetBoot(l.Context(), b.ask)
			if err != nil || out.Verdict != bmc.Unverifiable || out.Sent != 1 || l.c.Override() != b.want {
				l.Errorf("%+v: %+v, %v; the node has %+v", b.ask, out, err, l.c.Override())
			}
		}
	})
}

// TestRPCTellsNoMore: who the node is, its sensors and its log are not made up.
func TestRPCTellsNoMore(t *testing.T) {
	t.Parallel()
	site.run(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		defer p.Close(context.WithoutCancel(l.Context()))
		h := p.Handle(l.target)
		id, err := h.Identity(l.Context())
		if err != nil || id.Serial() != "" || !id.GUID.IsZero() || len(id.Gaps) != 1 {
			l.Errorf("%+v, %v", id, err)
		}
		if h.Certificate() == "" {
			l.Error("the service's certificate is not remembered")
		}
		err = bmc.Use(l.Context(), h, "read sensors", func(bmc.Sensors) error { return nil })
		if errkind.Of(err) != errkind.Unsupported {
			l.Errorf("sensors: %v", err)
		}
		nowhere := l.target
		nowhere.Addr = l.unusedAddr()
		if _, err := p.Handle(nowhere).Identity(l.Context()); errkind.Of(err) != errkind.Refused {
			l.Errorf("a node that the service does not know: %v", err)
		}
	})
}
