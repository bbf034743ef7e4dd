// SPDX-License-Identifier: Apache-2.0

package switchos

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
)

// peer is a SONiC switch as its shell shows it. Every command ends with its
// context; sudo never asks for a password, since admin of SONiC needs none.
type peer struct {
	name string // in the site
	at   Switches
}

// do runs a command that must end well; what it printed is in the error.
func (p *peer) do(ctx context.Context, stdin []byte, argv ...string) ([]byte, error) {
	out, err := p.at.Run(ctx, p.name, onnode.Command{Argv: argv, Stdin: stdin})
	if err != nil {
		return nil, err
	}
	if out.Exit != 0 {
		return out.Stdout, errkind.New(errkind.Refused, "switch %s: `%s` ended with status %d: %s", p.name, strings.Join(argv, " "), out.Exit, lastLines(out))
	}
	return out.Stdout, nil
}

// lastLines is the end of what a command said, errors last, as they come.
func lastLines(out onnode.Output) string {
	const most = 5
	var lines []string
	for l := range strings.Lines(string(out.Stdout) + "\n" + string(out.Stderr)) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "Patch Applier:") {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return "it said nothing"
	}
	return strings.Join(lines[max(0, len(lines)-most):], " / ")
}

// running reads the running CONFIG_DB. Images without sonic-cfggen for the login's
// shell have `show`, which calls it.
func (p *peer) running(ctx context.Context) (sonic.Config, error) {
	out, err := p.do(ctx, nil, "sudo", "-n", "sonic-cfggen", "-d", "--print-data")
	if errkind.Of(err) == errkind.Refused {
		var second error
		if out, second = p.do(ctx, nil, "show", "runningconfiguration", "all"); second != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	return p.parse(out)
}

// saved reads what the switch has after a reboot.
func (p *peer) saved(ctx context.Context) (sonic.Config, error) {
	out, err := p.do(ctx, nil, "sudo", "-n", "cat", "/etc/sonic/config_db.json")
	if err != nil {
		return nil, err
	}
	return p.parse(out)
}

func (p *peer) parse(out []byte) (sonic.Config, error) {
	have, err := sonic.Parse(out)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "switch %s: %w", p.name, err).Do("See whether SONiC runs there: `sonic-cfggen -d --print-data`.")
	}
	return have, nil
}

// read is running, of the switch that it should be: one that calls itself as
// another one of the site, or that lacks a port, is not touched. The host key that
// it showed is remembered.
func (p *peer) read(ctx context.Context, run stage.Run, s *sonic.Switch) (sonic.Config, error) {
	have, err := p.running(ctx)
	if err != nil {
		return nil, err
	}
	if key := p.at.HostKey(p.name); key != "" {
		f, err := HostKeyFact.New(Of(s.Switch), key, "")
		if err != nil {
			return nil, err
		}
		if known, ok := run.Fact(f.Key); !ok || !bytes.Equal(known.Value, f.Value) {
			if err := run.Learn(ctx, f); err != nil {
				return nil, err
			}
		}
	}
	return have, p.is(s, have)
}

// factoryNames are host names of switches that nobody has named.
var factoryNames = []string{"", "sonic", "localhost"}

// is refuses a switch that is another one than was meant.
func (p *peer) is(s *sonic.Switch, have sonic.Config) error {
	name := have["DEVICE_METADATA"]["localhost"]["hostname"]
	known := false
	for _, n := range append(factoryNames, s.Hostname(), s.Switch.Name, s.Switch.Label) {
		known = known || strings.EqualFold(n, name)
	}
	if !known {
		return errkind.New(errkind.Mismatch, "the switch at %s calls itself %q, and should be %s", s.Switch.Address, name, s.Switch.Name).
			Do(fmt.Sprintf("Find out which switch it is. If it is %s, name it so: `sudo config hostname %s`.", s.Switch.Name, s.Hostname()))
	}
	if absent := s.Absent(have); len(absent) > 0 {
		return errkind.New(errkind.Mismatch, "switch %s has no port %s: it is another model than %q, or its ports are split otherwise", p.name, strings.Join(absent[:min(len(absent), 4)], ", "), s.Switch.Model).
			Do("Set the breakout mode of these ports (`config interface breakout`), or correct the model in the site.")
	}
	return nil
}
