// SPDX-License-Identifier: Apache-2.0

package nics

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/mlxconfig"
)

// programs are those that can do it, the vendor's first; they are one program with two
// names.
var programs = []string{"mlxconfig", "mstconfig"}

// reading is a card as it was read.
type reading struct {
	card
	found   mlxconfig.Card
	program string
}

// unset are the settings that the next boot would not bring; waiting those that are not in
// force.
func (r reading) unset() []want {
	return r.lacking(func(s mlxconfig.Setting) mlxconfig.Value { return s.Next })
}

func (r reading) waiting() []want {
	if !r.found.Current {
		return nil
	}
	return r.lacking(func(s mlxconfig.Setting) mlxconfig.Value { return s.Current })
}

func (r reading) lacking(value func(mlxconfig.Setting) mlxconfig.Value) (list []want) {
	for _, w := range r.wants {
		if s, ok := r.setting(w); ok && !value(s).Is(w.value) {
			list = append(list, w)
		}
	}
	return list
}

// setting is a setting of the card as it was read. Elements of an array are one setting, of
// which each different value is named once; false where one of them is not there.
func (r reading) setting(w want) (mlxconfig.Setting, bool) {
	if w.array == "" {
		return r.found.Setting(w.name)
	}
	all := mlxconfig.Setting{Name: w.name}
	for i := w.low; i <= w.high; i++ {
		s, ok := r.found.Setting(fmt.Sprintf("%s[%d]", w.array, i))
		if !ok {
			return all, false
		}
		all.Current, all.Next, all.ReadOnly = withValue(all.Current, s.Current), withValue(all.Next, s.Next), all.ReadOnly || s.ReadOnly
	}
	return all, true
}

// withValue adds a value to those before it, where it is another one.
func withValue(list, v mlxconfig.Value) mlxconfig.Value {
	if list == "" || slices.Contains(strings.Split(string(list), ","), string(v)) {
		return cmp.Or(list, v)
	}
	return list + "," + v
}

// refused says why a card cannot be as asked: it is another one than the inventory says, it
// does not know a setting, or lets nobody set it.
func (r reading) refused() (why []string) {
	if !strings.EqualFold(r.found.Type, r.model.Device) {
		return []string{fmt.Sprintf("the card at %s is a %s, and the inventory says %s", r.pci, r.found.Type, r.model.Name)}
	}
	if bad := r.cannotSplit(); bad != "" {
		return []string{bad}
	}
	for _, w := range r.wants {
		s, ok := r.setting(w)
		switch {
		case !ok && w.must:
			why = append(why, fmt.Sprintf("the card at %s (%s) has no setting %s, which %s needs", r.pci, r.found.Part, w.name, w.option))
		case ok && s.ReadOnly && !s.Next.Is(w.value):
			why = append(why, fmt.Sprintf("the card at %s (%s) lets nobody set %s, which is %s; asked for is %s", r.pci, r.found.Part, w.name, s.Next, w.asked()))
		}
	}
	return why
}

// cannotSplit says why the cage of a card must not be split; empty: it may be, or nobody asks
// for it. A card that is not made for it accepts the settings and may be lost by them.
func (r reading) cannotSplit() string {
	about := r.found.Description
	switch says := r.model.Split.Says; {
	case r.split == 0:
		return ""
	case says != "" && !strings.Contains(strings.ToLower(about), strings.ToLower(says)):
		return fmt.Sprintf("the card at %s (%s) does not say of itself that its port can be split (%q): it is %q", r.pci, r.found.Part, says, about)
	case strings.Contains(strings.ToLower(about), "dual-port"):
		return fmt.Sprintf("the card at %s (%s) has two cages, and the split of one of them is not known: it is %q", r.pci, r.found.Part, about)
	}
	return ""
}

// describe says of settings what is asked for and what is there.
func describe(r reading, list []want) (lines []string) {
	for _, w := range list {
		s, _ := r.setting(w)
		there := string(s.Next)
		if r.found.Current {
			there = fmt.Sprintf("%s, and %s from the next power cycle on", s.Current, s.Next)
		}
		if s.Current == s.Next {
			there = string(s.Next)
		}
		lines = append(lines, fmt.Sprintf("%s: %s is %s; asked for is %s", r.pci, w.name, there, w.asked()))
	}
	return lines
}

// inForce lists what cards have, for the record.
func inForce(seen []reading) (list []string) {
	for _, r := range seen {
		for _, w := range r.wants {
			if s, ok := r.setting(w); ok {
				v := s.Next
				if r.found.Current {
					v = s.Current
				}
				list = append(list, fmt.Sprintf("%s %s %s", r.pci, w.name, v))
			}
		}
	}
	return list
}

// cardError is what a card answers instead of what was asked for.
type cardError struct {
	card card
	err  error
}

func (e *cardError) Error() string { return e.card.part + ": " + e.err.Error() }
func (e *cardError) Unwrap() error { return e.err }

// read reads all cards of a node that something is asked of.
func (s *Stage) read(ctx context.Context, n *inventory.Node) (list []reading, err error) {
	program := ""
	for _, c := range cardsOf(n.Hardware) {
		r := reading{card: c}
		if r.found, r.program, err = s.query(ctx, n.Name, c, program); err != nil {
			return nil, err
		}
		program = r.program
		list = append(list, r)
	}
	return list, nil
}

// query asks for one card. A program that is not there leaves it to the next one.
func (s *Stage) query(ctx context.Context, node string, c card, program string) (mlxconfig.Card, string, error) {
	for _, name := range programs {
		if program != "" && name != program {
			continue
		}
		out, err := s.ask(ctx, node, c, onnode.Command{Argv: []string{name, "-d", c.pci, "-e", "q"}})
		if hung := (*cardError)(nil); errors.As(err, &hung) {
			return mlxconfig.Card{}, "", err
		} else if err != nil {
			return mlxconfig.Card{}, "", fmt.Errorf("node %s: %s: %w", node, name, err)
		}
		if out.Exit == onnode.NoProgram {
			continue
		}
		found, err := parse(out)
		if err != nil {
			return mlxconfig.Card{}, "", &cardError{c, fmt.Errorf("%s -d %s: %w", name, c.pci, err)}
		}
		return found, name, s.queryArray(ctx, node, c, name, &found)
	}
	return mlxconfig.Card{}, "", errkind.New(errkind.Unsupported, "node %s has neither mlxconfig nor mstconfig", node).
		Do("Add package mstflint to the image or to a driver of kind inbox, or give the role a driver of kind doca; then run `ironrail apply`.")
}

// queryArray adds the elements of MODULE_SPLIT_M0 to what was read of a card whose cage is to
// be split: the table of all settings has one line for an array, without its values.
func (s *Stage) queryArray(ctx context.Context, node string, c card, program string, found *mlxconfig.Card) error {
	if _, has := found.Setting(mlxconfig.ModuleSplit); c.split == 0 || !has {
		return nil
	}
	name := fmt.Sprintf("%s[0..%d]", mlxconfig.ModuleSplit, mlxconfig.SplitLanes-1)
	out, err := s.ask(ctx, node, c, onnode.Command{Argv: []string{program, "-d", c.pci, "-e", "q", name}})
	if hung := (*cardError)(nil); errors.As(err, &hung) {
		return err
	} else if err != nil {
		return fmt.Errorf("node %s: %s: %w", node, program, err)
	}
	elements, err := parse(out)
	if err != nil {
		return &cardError{c, fmt.Errorf("%s -d %s q %s: %w", program, c.pci, name, err)}
	}
	found.Settings = append(found.Settings, elements.Settings...)
	return nil
}

// answerTime is how long the program may take over one card: it takes seconds, and waits
// without an end for firmware that hangs. Belief: nobody has published how long the slowest
// card takes.
const answerTime = 2 * time.Minute

// ask runs the program on one card. That it does not end in answerTime is the card's fault.
func (s *Stage) ask(ctx context.Context, node string, c card, cmd onnode.Command) (onnode.Output, error) {
	within, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	out, err := s.nodes.Run(within, node, cmd)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = &cardError{c, errkind.New(errkind.Timeout, "%s does not end within %s", strings.Join(cmd.Argv[:3], " "), answerTime)}
	}
	return out, err
}

// parse reads the answer about one card. Lines of settings that nobody asked for may be
// broken: of some old versions long values run into each other.
func parse(out onnode.Output) (mlxconfig.Card, error) {
	l, problems, err := mlxconfig.Parse(bytes.Join([][]byte{out.Stdout, out.Stderr}, []byte("\n")))
	if err != nil {
		return mlxconfig.Card{}, errkind.New(errkind.Mismatch, "exit status %d: %w", out.Exit, err)
	}
	for _, p := range problems {
		if p.Kind == tool.Failed {
			return mlxconfig.Card{}, errkind.New(errkind.Refused, "exit status %d: %s", out.Exit, p.Text)
		}
	}
	if out.Exit != 0 || len(l.Cards) != 1 || len(l.Cards[0].Settings) == 0 {
		return mlxconfig.Card{}, errkind.New(errkind.Mismatch, "exit status %d, and %d cards in the answer", out.Exit, len(l.Cards))
	}
	return l.Cards[0], nil
}

// set writes what the next boot would not bring, card by card.
func (s *Stage) set(ctx context.Context, node string, seen []reading) error {
	for _, r := range seen {
		list := r.unset()
		if len(list) == 0 {
			continue
		}
		argv := []string{r.program, "-d", r.pci, "-y", "set"}
		for _, w := range list {
			argv = append(argv, w.argument())
		}
		out, err := s.ask(ctx, node, r.card, onnode.Command{Argv: argv})
		switch {
		case err != nil:
			return err
		case out.Exit != 0:
			return &cardError{r.card, errkind.New(errkind.Refused, "%w", &onnode.ExitError{Node: node, Argv: argv, Output: out})}
		}
	}
	return nil
}

// What a person does about a card.
const (
	doRead   = "Run `mlxconfig -d ADDRESS -e q` on the node. A kernel in lockdown (Secure Boot) refuses it without the signed module of NVIDIA's MFT; a card that does not answer is reseated or replaced."
	doRefuse = "Correct the hardware block (`model`, `link_type`, `split`, `option_rom`, `mode`), update the card's firmware, or have it replaced; then run `ironrail apply`."
	doSet    = "Set it by hand with `mlxconfig -d ADDRESS set NAME=VALUE` and read it back; update the card's firmware, or have it replaced; then run `ironrail apply`."
	doSplit  = "Read MODULE_SPLIT_M0[0..15] and NUM_OF_PF of the card with `mlxconfig -e q`, and the kernel's log of its driver; correct `split` and the addresses in the hardware block, or update the card's firmware; then run `ironrail apply`."
	doBoot   = "Take `option_rom = false` off this NIC, or correct the PCI addresses in the hardware block."
)

// readSafe reads all cards and makes findings of those that must not be written: they do
// not answer, they are others, or the node boots from them.
func (s *Stage) readSafe(ctx context.Context, run stage.Run, n *inventory.Node) ([]reading, error) {
	seen, err := s.read(ctx, n)
	if bad := (*cardError)(nil); errors.As(err, &bad) {
		return nil, blame(ctx, run, n, bad.card, "the settings of a NIC cannot be read", []string{bad.err.Error()}, errkind.New(errkind.Refused, "%w", err).Do(doRead))
	} else if err != nil {
		return nil, err
	}
	for _, r := range seen {
		if why := r.refused(); len(why) > 0 {
			return nil, blame(ctx, run, n, r.card, why[0], why, errkind.New(errkind.Mismatch, "%s", strings.Join(why, "; ")).Do(doRefuse))
		}
		if mac, boots := bootsFrom(run, n, r.card); boots && r.switchesOff() {
			why := fmt.Sprintf("node %s boots from the card at %s (%s), and its option ROM is to be off: nothing is written", n.Name, r.pci, mac)
			return nil, blame(ctx, run, n, r.card, "the boot NIC is among those whose option ROM is to be off", []string{why}, errkind.New(errkind.Refused, "%s", why).Do(doBoot))
		}
	}
	return seen, nil
}

// switchesOff reports whether an option ROM of a card is to be off.
func (c card) switchesOff() bool {
	for _, w := range c.wants {
		if strings.HasPrefix(w.name, "EXP_ROM_") && w.value == 0 {
			return true
		}
	}
	return false
}

// bootsFrom reports whether the inspection found the MAC that the node boots from on a card.
func bootsFrom(run stage.Run, n *inventory.Node, c card) (mac addr.MAC, boots bool) {
	f, ok := run.Fact(install.HardwareFact.Of(subject.OfNode(n.Name)))
	if !ok || n.BootMAC.IsZero() {
		return mac, false
	}
	hw, err := install.HardwareFact.Get(f)
	if err != nil {
		return mac, false
	}
	for _, nic := range hw.NICs {
		if first, _ := splitFunction(nic.PCI); nic.MAC == n.BootMAC && first == c.pci {
			return nic.MAC, true
		}
	}
	return mac, false
}

// judge makes a finding of the first card that lacks something.
func (s *Stage) judge(ctx context.Context, run stage.Run, n *inventory.Node, seen []reading, lacks func(reading) []want, cause, action string) error {
	f := stage.Finding{Cause: cause, Action: action}
	for _, r := range seen {
		if list := lacks(r); len(list) > 0 {
			f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.OfNode(n.Name), Part: r.part})
			f.Evidence = append(append(f.Evidence, describe(r, list)...), s.identity(ctx, n.Name, r))
		}
	}
	if len(f.Suspects) == 0 {
		return nil
	}
	return errors.Join(run.Blame(ctx, f), errkind.New(errkind.Mismatch, "%s: %s", cause, strings.Join(f.Evidence, "; ")).Do(action))
}

// blame makes a finding about one card.
func blame(ctx context.Context, run stage.Run, n *inventory.Node, c card, cause string, evidence []string, err error) error {
	action := errkind.Action(err)
	if action == "" {
		action = doRefuse
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: c.part}}, Cause: cause, Evidence: evidence, Action: action}
	return errors.Join(run.Blame(ctx, f), err)
}

// identity says which card it is: its part number, and its serial number where the card's
// vital product data can be read.
func (s *Stage) identity(ctx context.Context, node string, r reading) string {
	text := fmt.Sprintf("%s: %s %s", r.pci, r.found.Type, r.found.Part)
	data, err := onnode.Do(ctx, s.nodes, node, "cat", "/sys/bus/pci/devices/"+r.pci+"/vpd")
	if err != nil {
		return text
	}
	if serial := serialOf(data); serial != "" {
		text += ", serial number " + serial
	}
	return text
}

// serialOf is the keyword SN of vital product data (PCI 3.0, appendix I): large resources,
// of which tag 90h holds keywords of two letters with a byte of length.
func serialOf(vpd []byte) string {
	for len(vpd) > 3 && vpd[0]&0x80 != 0 {
		size := int(vpd[1]) | int(vpd[2])<<8
		if size > len(vpd)-3 {
			return ""
		}
		if body := vpd[3 : 3+size]; vpd[0] == 0x90 {
			for len(body) > 3 && int(body[2]) <= len(body)-3 {
				if string(body[:2]) == "SN" {
					return strings.TrimSpace(string(body[3 : 3+body[2]]))
				}
				body = body[3+body[2]:]
			}
		}
		vpd = vpd[3+size:]
	}
	return ""
}
