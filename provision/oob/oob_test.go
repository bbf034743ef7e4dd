// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

const uuid = "00112233-4455-6677-8899-aabbccddeeff"

// guid is uuid as most BMCs send it.
var guid = bmc.GUID{0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}

// fakeBMC answers with what a test says.
type fakeBMC struct {
	id   bmc.Identity
	err  error
	cert string
}

func (f fakeBMC) Identity(context.Context) (bmc.Identity, error)     { return f.id, f.err }
func (f fakeBMC) PowerState(context.Context) (bmc.PowerState, error) { return bmc.PowerOff, f.err }
func (f fakeBMC) Certificate() string                                { return f.cert }

// record is a run that remembers what it was told; the rest is not called.
type record struct {
	stage.Run
	learned  []fact.Fact
	findings []stage.Finding
}

func (r *record) Learn(_ context.Context, f ...fact.Fact) error {
	r.learned = append(r.learned, f...)
	return nil
}

func (r *record) Blame(_ context.Context, f stage.Finding) error {
	r.findings = append(r.findings, f)
	return nil
}

// site has two nodes, n1 with the protocol.
func site(p bmc.Protocol) *inventory.Inventory {
	rack := &inventory.Rack{Name: "r1"}
	node := func(name, serial string) *inventory.Node {
		return &inventory.Node{Name: name, Serial: serial, UUID: uuid, Rack: rack, Unit: 4, Image: &inventory.Image{}, BMC: inventory.BMCTarget{Protocol: string(p)}}
	}
	return &inventory.Inventory{Nodes: []*inventory.Node{node("n1", "SN1"), node("n2", "SN2")}}
}

func apply(t *testing.T, p bmc.Protocol, b fakeBMC) (*record, error) {
	t.Helper()
	s := New(site(p), func(context.Context, string) (BMC, error) { return b, nil })
	steps, diags := s.Plan(nil)
	at := slices.IndexFunc(steps, func(st plan.Step) bool { return st.ID == StepOf("n1") })
	if diags.HasErrors() || at < 0 {
		t.Fatal(diags, steps)
	}
	r := &record{}
	err := s.Apply(t.Context(), r, steps[at])
	for _, f := range r.learned {
		if !slices.Contains(steps[at].Yields, f.Key) {
			t.Errorf("fact %s was not planned", f.Key)
		}
	}
	return r, err
}

func TestLearns(t *testing.T) {
	t.Parallel()
	pin := strings.Repeat("ab", 32)
	tests := []struct {
		protocol bmc.Protocol
		id       bmc.Identity
		want     Report
		cert     string
	}{
		{bmc.IPMI, bmc.Identity{Manufacturer: 10876, Product: 7, Firmware: bmc.Firmware{Major: 1, Minor: 2}, ProductSerial: "SN1", GUID: guid},
			Report{Serial: "SN1", GUID: uuid, Manufacturer: 10876, Product: 7, Firmware: "1.02"}, ""},
		{bmc.Redfish, bmc.Identity{Maker: "Dell Inc.", ProductName: "XE9680", BIOS: "2.1", BMCFirmware: "7.10.30", ProductSerial: "SN1", GUID: guid},
			Report{Serial: "SN1", GUID: uuid, Maker: "Dell Inc.", Model: "XE9680", BIOS: "2.1", Firmware: "7.10.30"}, pin},
	}
	for _, tt := range tests {
		r, err := apply(t, tt.protocol, fakeBMC{id: tt.id, cert: pin})
		if err != nil || len(r.learned) == 0 {
			t.Errorf("%s: %v", tt.protocol, err)
			continue
		}
		if got, err := ReportFact.Get(r.learned[0]); err != nil || got != tt.want || r.learned[0].Part != "SN1" {
			t.Errorf("%s: %+v, %v", tt.protocol, got, err)
		}
		var cert string
		if len(r.learned) > 1 {
			cert, _ = CertificateFact.Get(r.learned[1])
		}
		if cert != tt.cert {
			t.Errorf("%s: certificate %q", tt.protocol, cert)
		}
	}
}

// Each way in which a BMC fails has a finding of its own.
func TestTroubles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err   error
		cause string
	}{
		{errkind.New(errkind.Unreachable, "nothing answers"), "nothing answers at the BMC's address"},
		{errkind.New(errkind.Unreachable, "bmc: %w", syscall.ECONNREFUSED), "the port is closed at the BMC's address"},
		{errkind.New(errkind.Unreachable, "bmc: %w", syscall.EHOSTUNREACH), "no device has the BMC's address"},
		{errkind.New(errkind.Unreachable, "bmc: %w", syscall.ENETUNREACH), "this controller has no route to the BMC's network"},
		{errkind.New(errkind.Auth, "user name or password is wrong"), "refuses the user name or password"},
		{errkind.New(errkind.Auth, "%w: 401", bmc.ErrLocked), "the account is locked"},
		{errkind.New(errkind.Mismatch, "%w: its SHA-256", bmc.ErrCertificate), "a certificate that is not trusted"},
		{errkind.New(errkind.Mismatch, "no TLS at this port").Do("Correct the port."), "not what the inventory says"},
		{errkind.New(errkind.Timeout, "no answer in time"), "stopped answering"},
		{errkind.New(errkind.Refused, "session limit reached").Do("Close other sessions."), "refuses the request"},
		{errkind.New(errkind.Unsupported, "no system").Do("Reset the BMC."), "cannot do what is needed"},
	}
	for _, tt := range tests {
		r, err := apply(t, bmc.Redfish, fakeBMC{err: tt.err})
		if !errors.Is(err, tt.err) || len(r.findings) != 1 || len(r.learned) > 0 {
			t.Errorf("%v: %v, %+v", tt.err, err, r)
			continue
		}
		f := r.findings[0]
		if !strings.Contains(f.Cause, tt.cause) || f.Action == "" || f.Suspects[0] != (stage.Suspect{Subject: subject.OfNode("n1"), Part: "BMC"}) || f.Evidence[0] != tt.err.Error() {
			t.Errorf("%v: %+v", tt.err, f)
		}
	}
}

// Rows that were exchanged: the finding names the node whose BMC answered, and
// no certificate is remembered.
func TestWrongNode(t *testing.T) {
	t.Parallel()
	for serial, want := range map[string]string{"SN2": "that serial is n2's", "SN9": "not in the inventory"} {
		r, err := apply(t, bmc.Redfish, fakeBMC{id: bmc.Identity{ProductSerial: serial, GUID: guid}, cert: "ab"})
		if errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), want) || len(r.findings) != 1 || len(r.learned) > 0 {
			t.Errorf("%s: %v, %+v", serial, err, r)
		}
	}
	other := guid
	other[15]++
	if r, err := apply(t, bmc.IPMI, fakeBMC{id: bmc.Identity{ProductSerial: "SN1", GUID: other}}); errkind.Of(err) != errkind.Mismatch || len(r.findings) != 1 {
		t.Errorf("another GUID: %v", err)
	}
}
