// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/unit"
)

// hookStages are the stages that hooks stand before or after.
var hookStages = []string{"bmc", "install", "drivers", "fabric", "validate", "handover"}

// decodeRest reads the blocks that nothing refers to.
func (l *loader) decodeRest() {
	for _, b := range l.result.Bodies["cable"] {
		c := &Cable{Rail: -1, Type: language.Get[string](b, "type"), Length: language.Get[unit.Length](b, "length"), Decl: b.Decl, Ranges: &CableRanges{From: b.Range("from"), To: b.Range("to"), Type: b.Range("type"), Length: b.Range("length")}}
		l.positive(b, "length", float64(c.Length))
		c.From, c.To = l.cableEnd(b, "from"), l.cableEnd(b, "to")
		l.inv.Cables = append(l.inv.Cables, c)
	}
	slices.SortStableFunc(l.inv.Cables, func(a, b *Cable) int {
		return cmp.Or(strings.Compare(a.From.Text, b.From.Text), strings.Compare(a.To.Text, b.To.Text))
	})
	for _, b := range l.result.Bodies["hook"] {
		h := &Hook{When: b.Words[0], Stage: b.Words[1], Command: language.GetList[string](b, "command"), Timeout: language.Get[unit.Duration](b, "timeout"), Decl: b.Decl}
		l.checkHook(h, b)
		l.inv.Hooks = append(l.inv.Hooks, h)
	}
	for _, b := range l.result.Bodies["notify"] {
		l.inv.Notifies = append(l.inv.Notifies, l.notify(b))
	}
	for _, b := range l.result.Bodies["moved"] {
		m := &Move{From: language.Get[string](b, "from"), To: language.Get[string](b, "to"), Decl: b.Decl}
		l.bodies[m] = b
		l.inv.Moves = append(l.inv.Moves, m)
	}
	slices.SortStableFunc(l.inv.Moves, func(a, b *Move) int { return strings.Compare(a.From, b.From) })
	for _, b := range l.result.Bodies["allow"] {
		a := &Allow{Check: b.Name, Reason: language.Get[string](b, "reason"), Expires: language.Get[time.Time](b, "expires"), Decl: b.Decl}
		l.checkReason(b, a.Reason)
		l.bodies[a] = b
		l.inv.Allows = append(l.inv.Allows, a)
	}
}

// checkReason reports an exception that does not say why it is one.
func (l *loader) checkReason(b *language.Body, reason string) {
	if b.Right("reason") && strings.TrimSpace(reason) == "" {
		l.diags.Add("language.value", b.Range("reason"), "Empty reason", fmt.Sprintf("This %s gives no reason. Say why it is right, for whoever reads it in a year.", b.Type)).In(b.Decl)
	}
}

func (l *loader) checkHook(h *Hook, b *language.Body) {
	if h.When != "before" && h.When != "after" {
		l.diags.Add("language.value", b.Labels[0], "Unknown time of a hook", fmt.Sprintf("A hook is %q or %q a stage, not %q.%s", "before", "after", h.When, diag.DidYouMean(h.When, []string{"before", "after"}))).In(b.Decl)
	}
	if !slices.Contains(hookStages, h.Stage) {
		l.diags.Add("reference.unknown", b.Labels[1], "Unknown stage", fmt.Sprintf("There is no stage %q.%s", h.Stage, diag.DidYouMean(h.Stage, hookStages))).In(b.Decl)
	}
	if b.Right("command") && (len(h.Command) == 0 || h.Command[0] == "") {
		l.diags.Add("language.value", b.Range("command"), "Empty command", "A command has at least the path of a program.").In(b.Decl)
	}
}
