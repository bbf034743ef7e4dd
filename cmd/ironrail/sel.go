// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
)

func (a *app) selCommand() *cobra.Command {
	last := 20
	c := &cobra.Command{
		Use:   "sel [NODE...]",
		Short: "Show the event logs of BMCs",
		Long: `Ask the BMCs of the nodes, of all when none is named, for the newest entries of
their hardware event logs: the SEL of IPMI, or the log of Redfish that stands for
it. Each log is shown when its BMC has answered; 64 are asked at a time, and each
has two minutes. Times are those of the BMC's own clock. Nothing is cleared. While
apply runs it is asked, so that no BMC has two sessions of ours. Nodes are named as
for plan --target.

Exit code 3 when a log could not be read. --json prints a list of objects with node,
log, error and at, when all have answered or had their time.`,
		Example:           "  ironrail sel r01-u09\n  ironrail sel rack.r01 --last 5\n  ironrail sel r01-u09 --last 0 --json",
		Args:              asUsage(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeWords,
		RunE: func(c *cobra.Command, args []string) error {
			if last < 0 {
				return wrongUsage(c, errors.New("--last is a number of entries, or 0 for all"))
			}
			return a.bmcs(c.Context(), bmcWork{ask: control.BMCQuestion{For: control.AskLog, Last: last}, show: a.showLog}, args)
		},
	}
	c.Flags().IntVar(&last, "last", last, "show at most this `NUMBER` of entries of each log, the newest; 0: all")
	return c
}

func (a *app) sensorsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sensors [NODE...]",
		Short: "Show what the sensors of BMCs measure",
		Long: `Ask the BMCs of the nodes, of all when none is named, for power, temperatures and
fans. Each is shown when its BMC has answered; 64 are asked at a time, and each has
two minutes. While apply runs it is asked, so that no BMC has two sessions of ours.
Nodes are named as for plan --target.

Exit code 3 when a BMC did not say. --json prints a list of objects with node,
sensors (name, value and unit, by UCUM: W, Cel, RPM, %, V), error and at, when all
have answered or had their time.`,
		Example:           "  ironrail sensors r01-u09\n  ironrail sensors rack.r01 --json",
		Args:              asUsage(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeWords,
		RunE: func(c *cobra.Command, args []string) error {
			return a.bmcs(c.Context(), bmcWork{ask: control.BMCQuestion{For: control.AskSensors}, show: a.showSensors}, args)
		},
	}
}

// showLog prints the event log of one BMC.
func (a *app) showLog(x control.BMCAnswer) {
	a.showBMC(x, len(x.Log) == 0, "the log cannot be read", "the log is empty", func(p *page) {
		for _, e := range x.Log {
			when := "no time"
			if !e.Time.IsZero() {
				when = e.Time.UTC().Format(time.DateTime)
			}
			p.linef("  %-19s  %-8s  %s", when, e.Severity, e.Text)
		}
	})
}

// showSensors prints the readings of one BMC.
func (a *app) showSensors(x control.BMCAnswer) {
	a.showBMC(x, len(x.Sensors) == 0, "the sensors cannot be read", "the BMC shows no sensors", func(p *page) {
		for _, s := range x.Sensors {
			p.linef("  %-28s %10s %s", s.Name, strconv.FormatFloat(s.Value, 'g', 6, 64), s.Unit)
		}
	})
}

// showBMC prints what one BMC answered below the name of its node: what failed says with an error, what
// nothing says where it is empty, and what it has, which lines adds.
func (a *app) showBMC(x control.BMCAnswer, empty bool, failed, nothing string, lines func(*page)) {
	if a.json {
		return
	}
	var p page
	switch {
	case x.Error != "":
		p.linef("%s: %s: %s", x.Node, failed, x.Error)
	case empty:
		p.linef("%s: %s", x.Node, nothing)
	default:
		p.linef("%s:", x.Node)
	}
	lines(&p)
	p.to(a.out)
}
