// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// chassis answers one call of ipmi_sim's chassis program: "get power boot" or
// "set power 1 boot pxe" (OpenIPMI lanserv/extcmd.c). It only takes notes and
// puts work in the machine's queue: ipmi_sim waits for the answer, and an
// ipmitool that waits for a second sends its command again.
func (m *machine) chassis(args []string) (string, error) {
	if len(args) < 2 {
		return "", errkind.New(errkind.Unsupported, "machine %s: chassis %q: want get or set and a name", m.Name, args)
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "get":
		return m.chassisGet(rest)
	case "set":
		return "", m.chassisSet(rest)
	case "check":
		return "", nil
	}
	return "", errkind.New(errkind.Unsupported, "machine %s: chassis verb %q is not get, set or check", m.Name, args[0])
}

// chassisGet answers with the power that was asked for, which the machine
// follows in a moment, and with the boot device not yet used.
func (m *machine) chassisGet(names []string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out strings.Builder
	for _, n := range names {
		switch n {
		case "power":
			power := 0
			if m.wanted {
				power = 1
			}
			fmt.Fprintf(&out, "power:%d\n", power)
		case "boot":
			fmt.Fprintf(&out, "boot:%s\n", m.order.Asked())
		default:
			return "", errkind.New(errkind.Unsupported, "machine %s: chassis has no %q", m.Name, n)
		}
	}
	return out.String(), nil
}

func (m *machine) chassisSet(pairs []string) error {
	if len(pairs)%2 != 0 {
		return errkind.New(errkind.Unsupported, "machine %s: chassis set %q: a name without a value", m.Name, pairs)
	}
	for i := 0; i < len(pairs); i += 2 {
		if err := m.set(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// set takes one command. The boot order is decided here, in the order in which
// the commands came, not when the queue gets to it.
func (m *machine) set(name, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch name {
	case "power":
		return m.setPower(value == "1")
	case "reset":
		if !m.wanted {
			m.note(Effect{Kind: Command, What: "reset", Note: "refused: power is off"})
			return errkind.New(errkind.Refused, "machine %s: reset while the power is off", m.Name)
		}
		m.note(Effect{Kind: Command, What: "reset", Changed: true})
		return m.enqueue(action{do: doReset, index: m.order.Take()})
	case "shutdown":
		m.note(Effect{Kind: Command, What: "shutdown", Changed: m.wanted})
		return m.enqueue(action{do: doButton})
	case "boot":
		m.order.Ask(value)
		m.note(Effect{Kind: Command, What: "boot " + value, Changed: true})
		return nil
	case "identify":
		return nil // no lamp to blink
	}
	return errkind.New(errkind.Unsupported, "machine %s: chassis cannot set %q", m.Name, name)
}

// setPower is called with mu held. Power that already is as asked is counted as
// a command and does nothing, as on a real BMC.
func (m *machine) setPower(on bool) error {
	what, a := "power off", action{do: doStop}
	if on {
		what, a = "power on", action{do: doStart}
	}
	changed := m.wanted != on
	m.note(Effect{Kind: Command, What: what, Changed: changed})
	if !changed {
		return nil
	}
	if on {
		a.index = m.order.Take()
	}
	m.wanted = on
	return m.enqueue(a)
}
