// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/netlab"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Faults are what is wrong with one machine on purpose. They stay until they are
// cleared, also over a restart of the supervisor.
type Faults struct {
	Unplugged bool        `json:"unplugged,omitempty"` // the management NIC has no link: the machine never asks for DHCP
	NoRail    bool        `json:"no_rail,omitempty"`   // the rail NIC is missing from the next power on
	RailRate  netlab.Rate `json:"rail_rate,omitempty"` // kbit/s, 0 is not limited
	BootRate  netlab.Rate `json:"boot_rate,omitempty"` // kbit/s that it sends over the boot network, 0 is not limited
	DiskRate  int64       `json:"disk_rate,omitempty"` // bytes a second that its disks are read, 0 is not limited
	CPUShare  int         `json:"cpu_share,omitempty"` // percent of a CPU that it gets, 0 is not limited
}

// FaultRequest asks for one fault: slow-rail, slow-network, slow-disk, slow-cpu, unplug, missing-nic or clear.
type FaultRequest struct {
	Name    string      `json:"name"`
	Machine string      `json:"machine"` // for clear, "" is every machine
	Rate    netlab.Rate `json:"rate,omitempty"`
}

// What a slow disk reads, bytes a second, what a slow CPU gets, percent of one, and what a slow boot
// network takes from a machine, kbit/s.
const (
	slowNetwork = 4000
	slowDisk    = 4 << 20
	slowCPU     = 10
)

// inject changes the faults of one machine and makes the change felt.
func (s *Supervisor) inject(ctx context.Context, m *machine, r FaultRequest) error {
	f := m.fault()
	switch r.Name {
	case "slow-rail":
		if r.Rate <= 0 {
			return errkind.New(errkind.Refused, "slow-rail: no rate").Do("give --factor or --rate")
		}
		f.RailRate = r.Rate
	case "slow-network":
		f.BootRate = slowNetwork
	case "slow-disk":
		f.DiskRate = slowDisk
	case "slow-cpu":
		f.CPUShare = slowCPU
	case "unplug":
		f.Unplugged = true
	case "missing-nic":
		f.NoRail = true
	case "clear":
		f = Faults{}
	default:
		return errkind.New(errkind.Refused, "fault %q is not known", r.Name).Do("use slow-rail, slow-network, slow-disk, slow-cpu, unplug, missing-nic or clear")
	}
	if err := s.applyFaults(ctx, m, f); err != nil {
		return err
	}
	m.note(Effect{Kind: Faulted, What: r.Name})
	return s.saveFaults()
}

// applyFaults makes m's faults f. The rail's rate belongs to the network, the
// cable to QEMU; a missing NIC waits for the next start.
func (s *Supervisor) applyFaults(ctx context.Context, m *machine, f Faults) error {
	old := m.fault()
	if f.RailRate != old.RailRate {
		err := error(nil)
		if f.RailRate > 0 {
			err = netlab.SlowRail(ctx, s.lab.Name, m.Machine, f.RailRate)
		} else {
			err = netlab.ClearRail(ctx, s.lab.Name, m.Machine)
		}
		if err != nil {
			return err
		}
	}
	if f.BootRate != old.BootRate {
		err := error(nil)
		if f.BootRate > 0 {
			err = netlab.SlowBoot(ctx, s.lab.Name, m.Machine, f.BootRate)
		} else {
			err = netlab.ClearBoot(ctx, s.lab.Name, m.Machine)
		}
		if err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = f
	if f.Unplugged != old.Unplugged {
		if err := m.enqueue(action{do: doLink}); err != nil {
			return err
		}
	}
	if f.DiskRate != old.DiskRate || f.CPUShare != old.CPUShare {
		return m.enqueue(action{do: doSlow})
	}
	return nil
}

func (s *Supervisor) saveFaults() error {
	all := map[string]Faults{}
	for _, m := range s.machines {
		if f := m.fault(); f != (Faults{}) {
			all[m.Name] = f
		}
	}
	return writeJSON(filepath.Join(s.lab.Dir, faultFile), all)
}

// restoreFaults takes up the faults of an earlier supervisor of this folder.
func (s *Supervisor) restoreFaults(ctx context.Context) error {
	var all map[string]Faults
	err := readJSON(filepath.Join(s.lab.Dir, faultFile), &all)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	for _, m := range s.machines {
		if f, ok := all[m.Name]; ok {
			if err := s.applyFaults(ctx, m, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// rateOf returns the rate of a rail slowed by a factor.
func rateOf(factor int) (netlab.Rate, error) {
	if factor < 2 || factor > 1000 {
		return 0, errkind.New(errkind.Refused, "factor %d: want 2 to 1000", factor)
	}
	return netlab.Rate(netlab.RailRate / factor), nil
}

// SlowRail builds the request for a rail slowed by a factor or to a rate.
func SlowRail(m rack.Machine, factor int, rate string) (FaultRequest, error) {
	r := FaultRequest{Name: "slow-rail", Machine: m.Name}
	var err error
	if rate != "" {
		r.Rate, err = netlab.ParseRate(rate)
	} else {
		r.Rate, err = rateOf(factor)
	}
	return r, err
}
