// SPDX-License-Identifier: Apache-2.0

package bmc_test

import (
	"slices"
	"testing"

	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// TestParts: on every maker's BMC a supply that has failed is told from one that
// has no mains.
func TestParts(t *testing.T) {
	able(t, func(l *lab, h *bmc.Handle) {
		read := func() (bad, dark, supplies int) {
			err := bmc.Use(l.Context(), h, "read the parts", func(b bmc.Enclosure) error {
				all, err := b.Parts(l.Context())
				for _, p := range all {
					if p.Kind != bmc.Supply {
						if p.Failed {
							l.Errorf("%+v", p)
						}
						continue
					}
					supplies++
					if p.Absent || p.Name == "" {
						l.Errorf("%+v", p)
					}
					if p.Failed {
						bad++
					}
					if p.NoInput {
						dark++
					}
				}
				return err
			})
			if err != nil {
				l.Error(err)
			}
			return bad, dark, supplies
		}
		if bad, dark, all := read(); bad != 0 || dark != 0 || all < 2 {
			l.Errorf("as delivered: %d bad, %d dark of %d", bad, dark, all)
		}
		l.c.Mains(1, false)
		if bad, dark, _ := read(); bad != 0 || dark != 1 {
			l.Errorf("without mains: %d bad, %d dark", bad, dark)
		}
		l.c.Mains(1, true)
		l.c.FailSupply(1)
		if bad, dark, _ := read(); bad != 1 || dark != 0 {
			l.Errorf("failed: %d bad, %d dark", bad, dark)
		}
	})
}

// TestAir: on every maker's BMC over Redfish a fan that stands still and air that is too
// warm are found, and nothing else.
func TestAir(t *testing.T) {
	able(t, func(l *lab, h *bmc.Handle) {
		read := func() (failed []string, fans, inlets int) {
			err := bmc.Use(l.Context(), h, "read the parts", func(b bmc.Enclosure) error {
				all, err := b.Parts(l.Context())
				for _, p := range all {
					switch p.Kind {
					case bmc.Fan:
						fans++
					case bmc.Inlet:
						inlets++
					}
					if p.Failed {
						failed = append(failed, p.Name)
					}
				}
				return err
			})
			if err != nil {
				l.Error(err)
			}
			return failed, fans, inlets
		}
		if _, fans, _ := read(); fans > 0 {
			l.Errorf("%d fans turn without power", fans)
		}
		l.press(chassis.PressOn)
		bad, fans, inlets := read()
		if fans == 0 && inlets == 0 {
			return // IPMI
		}
		if len(bad) > 0 || fans != 4 || inlets != 1 {
			l.Errorf("as delivered: %d fans, %d inlets, %q are bad", fans, inlets, bad)
		}
		l.c.StopFan(2)
		if bad, _, _ := read(); !slices.Equal(bad, []string{"Fan2"}) {
			l.Errorf("with a fan that stands still: %q", bad)
		}
		l.c.WarmAir(37)
		if bad, _, _ := read(); len(bad) != 2 || !slices.Contains(bad, "Inlet Temp") {
			l.Errorf("with warm air: %q", bad)
		}
	})
}

// TestLogSince: what is new after a mark, on every kind of BMC, also when the log
// was emptied meanwhile.
func TestLogSince(t *testing.T) {
	telling(t, func(l *lab) {
		p := bmc.NewPool(l.opts)
		defer p.Close(l.Context())
		h := p.Handle(l.target)
		count := func(m bmc.LogMark) (n int, end bmc.LogMark) {
			err := bmc.Use(l.Context(), h, "read the log", func(b bmc.LogSince) error {
				list, err := b.LogSince(l.Context(), m)
				if err != nil {
					return err
				}
				n = len(list)
				end, err = b.LogMark(l.Context())
				return err
			})
			if err != nil {
				l.Error(err)
			}
			return n, end
		}
		l.c.Log("Critical", "Memory", "uncorrectable ECC in DIMM A3")
		_, mark := count(bmc.LogMark{})
		if n, end := count(mark); n != 0 || end != mark {
			l.Errorf("%d entries after %+v, which ends at %+v", n, mark, end)
		}
		l.c.Log("Critical", "Memory", "uncorrectable ECC in DIMM A3")
		l.c.Log("Critical", "Fan", "Fan 3 failed")
		if n, _ := count(mark); n != 2 {
			l.Errorf("%d entries after the mark", n)
		}
		l.c.ClearLog()
		if n, _ := count(mark); n != 1 {
			l.Errorf("%d entries of a log that was emptied", n)
		}
	})
}
