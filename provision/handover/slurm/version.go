// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/provision/handover"
)

// release is a release of Slurm, such as 23.11; its zero value is an unknown one.
type release struct{ year, month int }

// The first releases that have something (the release notes of Slurm).
var (
	blockSince = release{23, 11} // topology/block
	yamlSince  = release{25, 5}  // topology.yaml, which is read in place of topology.conf
)

func (r release) String() string { return fmt.Sprintf("%d.%02d", r.year, r.month) }

func (r release) known() bool { return r != release{} }

// before reports whether r is an older release.
func (r release) before(o release) bool {
	return r.year < o.year || r.year == o.year && r.month < o.month
}

var releaseForm = lazyregexp.New(`\b([0-9]{2})\.([0-9]{2})(\.[0-9]+)?\b`)

// parseRelease finds a release in a text such as "slurm-wlm 22.05.8".
func parseRelease(text string) (release, bool) {
	m := releaseForm.FindStringSubmatch(text)
	if m == nil {
		return release{}, false
	}
	year, _ := strconv.Atoi(m[1])
	month, _ := strconv.Atoi(m[2])
	return release{year, month}, month >= 1 && month <= 12
}

// daemon is what slurmctld says of itself.
type daemon struct {
	release release
	gres    []string // GresTypes; nil: it was not asked
	plugin  string   // TopologyPlugin
	asked   bool
}

// daemon asks slurmctld for its version and settings. Where it cannot be asked,
// the version is that of the attribute `version`, if it is given.
func (s *Slurm) daemon(ctx context.Context, t handover.Target) (daemon, error) {
	out, err := s.runProgram(ctx, t, "scontrol", "show", "config")
	if d := parseConfig(string(out)); err == nil && d.release.known() {
		return d, nil
	}
	if err != nil && ctx.Err() != nil {
		return daemon{}, err
	}
	var d daemon
	if out, verr := s.runProgram(ctx, t, "scontrol", "--version"); verr == nil { // its package, of the same release
		d.release, _ = parseRelease(string(out))
	}
	if !d.release.known() {
		d.release, _ = parseRelease(readSettings(t.Handover).version)
	}
	return d, nil
}

// parseConfig reads `scontrol show config`: KEY = VALUE, a line each.
func parseConfig(text string) daemon {
	d := daemon{asked: true, gres: []string{}}
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(line, "=")
		if !found {
			continue
		}
		switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
		case "SLURM_VERSION":
			d.release, _ = parseRelease(value)
		case "GresTypes":
			if value != "(null)" {
				d.gres = strings.Split(value, ",")
			}
		case "TopologyPlugin":
			d.plugin = value
		}
	}
	return d
}
