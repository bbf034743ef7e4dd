// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
	"github.com/ironrail/ironrail/provision/supply"
)

// httpsPort is where the management controllers of power shelves answer.
const httpsPort = 443

// Shelf implements supply.Dependencies. The password is resolved here, and only here.
func (f *Feeds) Shelf(s *inventory.Shelf) (supply.Shelf, error) {
	pw, err := f.secrets.Resolve(s.Control.Password)
	if err != nil {
		return nil, errkind.New(errkind.Auth, "password of power shelf %s: %w", s.Name, err).Do("Make the secret available to this command, then run it again.")
	}
	pinned, err := f.shelfCertificate(s)
	if err != nil {
		return nil, err
	}
	c, err := redfish.New(redfish.Config{Addr: netip.AddrPortFrom(s.Control.Address, httpsPort), Username: s.Control.Username, Password: pw, Pinned: pinned, Network: f.network,
		TLS: redfish.TLS{Mode: redfish.TLSMode(s.Control.TLS.Mode), Fingerprint: s.Control.TLS.Fingerprint, CA: s.Control.TLS.CA}})
	if err != nil {
		return nil, fmt.Errorf("power shelf %s: %w", s.Name, err)
	}
	return shelf{s.Name, c, f.now}, nil
}

// shelfCertificate is the certificate that a shelf showed when it was first believed; ""
// before that.
func (f *Feeds) shelfCertificate(s *inventory.Shelf) (string, error) {
	if f.facts == nil {
		return "", nil
	}
	known, ok := f.facts(supply.ShelfCertificateFact.Of(supply.OfShelf(s)))
	if !ok {
		return "", nil
	}
	return supply.ShelfCertificateFact.Get(known)
}

// shelf is one power shelf over Redfish.
type shelf struct {
	name   string
	client *redfish.Client
	now    func() time.Time
}

// ReadShelf implements supply.Shelf. The session is closed again.
func (s shelf) ReadShelf(ctx context.Context) (supply.ShelfReading, error) {
	defer func() { _ = s.client.Close(ctx) }() // the session expires by itself
	got, err := s.client.PowerShelf(ctx)
	if err != nil {
		return supply.ShelfReading{}, fmt.Errorf("power shelf %s: %w", s.name, err)
	}
	if len(got.Supplies) == 0 {
		return supply.ShelfReading{}, errkind.New(errkind.Unsupported, "power shelf %s: its Redfish service names no power supply", s.name).
			Do("Look whether the address in its control block is that of the power shelf.")
	}
	r := supply.ShelfReading{At: s.now(), Manufacturer: got.Manufacturer, Model: got.Model, Serial: got.Serial, Certificate: s.client.Certificate()}
	for _, p := range got.Supplies {
		r.Supplies = append(r.Supplies, supply.ShelfSupply{Name: p.Name, Absent: p.Absent, Failed: p.Failed, Off: p.Off, NoInput: p.NoInput, Says: p.Message})
	}
	return r, nil
}
