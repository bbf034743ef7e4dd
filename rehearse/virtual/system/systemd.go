// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// units is what systemd knows. It is safe for concurrent use.
type units struct {
	mu      sync.Mutex // guards what follows
	started bool       // the start is finished
	failed  map[string]bool
	active  map[string]bool
}

// baseUnits run on every node.
var baseUnits = []string{"ssh", "systemd-networkd", "systemd-timesyncd", "systemd-journald", "cron", "dbus", "systemd-modules-load"}

// settleTime is how long the last services take after sshd answers.
const settleTime = 4 * time.Second

// roceUnit is the unit that the fabric step leaves on a node.
const roceUnit = "ironrail-roce"

// startUnits does what happens before sshd answers.
func (n *node) startUnits(context.Context) {
	n.units.failed, n.units.active = map[string]bool{}, map[string]bool{}
	for _, u := range baseUnits {
		n.units.active[u] = true
	}
	n.tree.set(mountTable, "/dev/vda2 / ext4 rw,relatime 0 0\n")
	n.networkd()
	n.applySysctls()
	n.coldplug()
	n.place()
}

// finishStart runs what is still starting when sshd already answers.
func (n *node) finishStart(ctx context.Context) {
	if n.tree.exists("etc/systemd/system/multi-user.target.wants/" + roceUnit + ".service") {
		r := n.rails().Up(ctx)
		n.units.end(roceUnit, r.Error == nil && ctx.Err() == nil)
	}
	n.unlockAtStart()
	n.mountAtStart(ctx)
	n.userData(ctx)
	for _, name := range n.wantedAtStart() {
		n.units.end(name, n.startPackaged(ctx, name) == "")
	}
	if n.cfg.Clock.Sleep(ctx, settleTime) == nil {
		n.units.finish()
	}
}

func (u *units) end(name string, well bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active[name], u.failed[name] = well, !well
}

func (u *units) finish() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.started = true
}

// state is what `systemctl is-system-running` says.
func (u *units) state() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case !u.started:
		return "starting"
	case len(u.broken()) > 0:
		return "degraded"
	}
	return "running"
}

// broken lists the failed units by name; u.mu is held.
func (u *units) broken() []string {
	var list []string
	for name, failed := range u.failed {
		if failed {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// of is what `systemctl is-active` says.
func (u *units) of(name string) string {
	name = strings.TrimSuffix(name, ".service")
	if name == "sshd" {
		name = "ssh"
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.failed[name]:
		return "failed"
	case u.active[name]:
		return "active"
	}
	return "inactive"
}

// list is what `systemctl list-units --failed --plain --no-legend` prints.
func (u *units) list() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	text := ""
	for _, name := range u.broken() {
		unit := name
		if !strings.Contains(name, ".") {
			unit += ".service"
		}
		text += unit + " loaded failed failed " + name + "\n"
	}
	return text
}

// runSystemctl returns the program, and what the agent calls.
func runSystemctl(ctx context.Context, c call) int {
	words, properties := systemctlWords(c.Argv)
	switch words[0] {
	case "is-system-running":
		state := c.n.units.state()
		c.print(state + "\n")
		if state != "running" {
			return 1
		}
	case "list-units":
		c.print(c.n.units.list())
	case "is-active":
		return c.n.unitStates(c, words[1:], "active", 3)
	case "is-failed":
		return c.n.unitStates(c, words[1:], "failed", 1)
	case "is-enabled":
		return c.n.isEnabled(c, words[len(words)-1])
	case "show":
		c.n.show(c, words[1:], properties)
	case "start", "restart", "stop", "enable", "disable", "reload", "mask", "unmask":
		return c.n.unitVerb(ctx, c, words)
	case "daemon-reload", "reset-failed", "preset":
	case "reboot", "poweroff", "halt", "kexec":
		return c.n.depart(words[0] != "reboot" && words[0] != "kexec")
	default:
		_, _ = fmt.Fprintf(c.Err, "Unknown command verb %s.\n", words[0])
		return 1
	}
	return 0
}

// systemctlWords takes the command line apart: the verb and its units, and the list of
// properties that are asked for.
func systemctlWords(argv []string) (words []string, properties string) {
	for i := 1; i < len(argv); i++ {
		switch a := argv[i]; {
		case a == "-p" && i+1 < len(argv):
			i++
			properties = argv[i]
		case strings.HasPrefix(a, "--property="):
			properties = strings.TrimPrefix(a, "--property=")
		case !strings.HasPrefix(a, "-"):
			words = append(words, a)
		}
	}
	if len(words) == 0 {
		words = []string{"list-units"}
	}
	return words, properties
}

// unitStates prints the states of units. The exit status is 0 when one of them is the
// wanted one.
func (n *node) unitStates(c call, names []string, wanted string, otherwise int) int {
	status := otherwise
	for _, u := range names {
		state := n.units.of(u)
		c.print(state + "\n")
		if state == wanted {
			status = 0
		}
	}
	return status
}

func (n *node) show(c call, names []string, properties string) {
	for _, u := range names {
		active, sub := n.units.of(u), "dead"
		if active == "active" {
			sub = "running"
		}
		for _, p := range [][2]string{{"Id", strings.TrimSuffix(u, ".service") + ".service"}, {"LoadState", "loaded"}, {"ActiveState", active}, {"SubState", sub}} {
			if properties == "" || strings.Contains(","+properties+",", ","+p[0]+",") {
				c.print(p[0] + "=" + p[1] + "\n")
			}
		}
	}
}

// unitVerb starts and stops units: ours for the rails, and those of the system.
func (n *node) unitVerb(ctx context.Context, c call, words []string) int {
	for _, u := range words[1:] {
		if strings.HasSuffix(u, ".mount") {
			if status := n.mountVerb(ctx, c, words[0], u); status != 0 {
				return status
			}
			continue
		}
		if strings.HasPrefix(u, unlockUnit) {
			if !n.unlock(u) {
				_, _ = fmt.Fprintf(c.Err, "Job for %s failed.\nSee \"systemctl status %[1]s\" and \"journalctl -xeu %[1]s\" for details.\n", u)
				return 1
			}
			continue
		}
		name := strings.TrimSuffix(u, ".service")
		known := n.units.of(name) != "inactive" || n.hasUnit(name) || n.tree.exists("etc/systemd/system/"+name+".service")
		if !known {
			_, _ = fmt.Fprintf(c.Err, "Failed to %s %s.service: Unit %s.service not found.\n", words[0], name, name)
			return 5
		}
		switch words[0] {
		case "start", "restart":
			if name == roceUnit {
				r := n.rails().Up(ctx)
				n.units.end(name, r.Error == nil)
				continue
			}
			if said := n.startPackaged(ctx, name); said != "" {
				n.units.end(name, false)
				n.tree.set("run/log/"+name, said+"\n")
				_, _ = fmt.Fprintf(c.Err, "Job for %s.service failed because the control process exited with error code.\nSee \"systemctl status %[1]s.service\" and \"journalctl -xeu %[1]s.service\" for details.\n", name)
				return 1
			}
			n.units.end(name, true)
		case "enable", "disable":
			if n.hasUnit(name) {
				n.enable(name, words[0] == "enable")
			}
		case "stop":
			n.units.mu.Lock()
			delete(n.units.active, name)
			n.units.mu.Unlock()
		}
	}
	return 0
}

// depart has the system end a little later, so that the answer gets out.
func (n *node) depart(off bool) int {
	how := chassis.Reset
	if off {
		how = chassis.Shutdown
	}
	select {
	case n.going <- how:
	default: // it goes already
	}
	return 0
}

// leaveProgram is reboot(8), poweroff(8) and shutdown(8).
func leaveProgram(_ context.Context, c call) int {
	o, _ := splitOperands(c.Argv, "")
	return c.n.depart(c.name() == "poweroff" || c.name() == "shutdown" && !hasOption(o, 'r'))
}
