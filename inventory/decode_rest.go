package inventory

import (
	"fmt"
	"slices"
	"strconv"
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
		c := &Cable{Rail: -1, Type: language.Get[string](b, "type"), Length: language.Get[unit.Length](b, "length"), Decl: b.Decl, Ranges: &CableRanges{Type: b.Range("type"), Length: b.Range("length")}}
		c.From, c.To = l.cableEnd(b, "from"), l.cableEnd(b, "to")
		l.inv.Cables = append(l.inv.Cables, c)
	}
	slices.SortStableFunc(l.inv.Cables, func(a, b *Cable) int { return strings.Compare(a.From.Text+" "+a.To.Text, b.From.Text+" "+b.To.Text) })
	for _, b := range l.result.Bodies["hook"] {
		h := &Hook{When: b.Words[0], Stage: b.Words[1], Command: language.GetList[string](b, "command"), Timeout: language.Get[unit.Duration](b, "timeout"), Decl: b.Decl}
		l.checkHook(h, b)
		l.inv.Hooks = append(l.inv.Hooks, h)
	}
	for _, b := range l.result.Bodies["moved"] {
		m := &Move{From: language.Get[string](b, "from"), To: language.Get[string](b, "to"), Decl: b.Decl}
		l.bodies[m] = b
		l.inv.Moves = append(l.inv.Moves, m)
	}
	for _, b := range l.result.Bodies["allow"] {
		a := &Allow{Check: b.Name, Reason: language.Get[string](b, "reason"), Expires: language.Get[time.Time](b, "expires"), Decl: b.Decl}
		l.bodies[a] = b
		l.inv.Allows = append(l.inv.Allows, a)
	}
}

func (l *loader) checkHook(h *Hook, b *language.Body) {
	if h.When != "before" && h.When != "after" {
		l.diags.Add("language.value", b.Labels[0], "Unknown time of a hook", fmt.Sprintf("A hook is %q or %q a stage, not %q.%s", "before", "after", h.When, diag.DidYouMean(h.When, []string{"before", "after"}))).In(b.Decl)
	}
	if !slices.Contains(hookStages, h.Stage) {
		l.diags.Add("reference.unknown", b.Labels[1], "Unknown stage", fmt.Sprintf("There is no stage %q.%s", h.Stage, diag.DidYouMean(h.Stage, hookStages))).In(b.Decl)
	}
	if len(h.Command) == 0 && b.Given("command") && !l.diags.HasErrors() {
		l.diags.Add("language.value", b.Range("command"), "Empty command", "A command has at least the path of a program.").In(b.Decl)
	}
}

// cableEnd finds the port that a cable ends in: node/nic/index or
// rack/switch/port.
func (l *loader) cableEnd(b *language.Body, name string) CableEnd {
	end := CableEnd{Text: language.Get[string](b, name), Range: b.Range(name)}
	parts := strings.Split(end.Text, "/")
	if end.Text == "" {
		return end
	}
	port := -1
	if len(parts) == 3 {
		if n, err := strconv.Atoi(parts[2]); err == nil {
			port = n
		}
	}
	wrong := func(detail string) CableEnd {
		l.diags.Add("reference.unknown", end.Range, "Unknown end of a cable", detail).In(b.Decl)
		return end
	}
	if port < 0 {
		return wrong(fmt.Sprintf(`%q is no port; it is written "node/nic/index", such as "r01-u01/rail/0", or "rack/switch/port", such as "r01/leaf-1/17".`, end.Text))
	}
	end.Port = port
	if n := l.nodes[parts[0]]; n != nil {
		end.Node = n
		if n.Hardware == nil {
			return end
		}
		nic, ok := n.Hardware.NIC(parts[1])
		if end.NIC = nic; !ok || port >= len(nic.Ports) {
			return wrong(fmt.Sprintf("Node %s, hardware %q, has no port %q.", n.Name, n.Hardware.Name, parts[1]+"/"+parts[2]))
		}
		return end
	}
	s := l.switches[parts[0]+"/"+parts[1]]
	if end.Switch = s; s == nil {
		return wrong(fmt.Sprintf("There is neither a node %q nor a switch %q.%s", parts[0], parts[0]+"/"+parts[1], nearEnd(l, parts)))
	}
	if s.Ports > 0 && (port < 1 || port > s.Ports) {
		return wrong(fmt.Sprintf("Switch %s has the ports 1 to %d.", s.Name, s.Ports))
	}
	return end
}

func nearEnd(l *loader, parts []string) string {
	if near := diag.Nearest(parts[0]+"/"+parts[1], keys(l.switches)); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near+"/"+parts[2])
	}
	if near := diag.Nearest(parts[0], keys(l.nodes)); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near+"/"+parts[1]+"/"+parts[2])
	}
	return ""
}

// checkCables reports ports with two cables, and cables from a port to itself.
func (l *loader) checkCables() {
	taken := map[string]CableEnd{}
	for _, c := range l.inv.Cables {
		if c.From.Text != "" && c.From.Text == c.To.Text {
			l.diags.Add("port.duplicate", c.To.Range, "Cable from a port to itself", fmt.Sprintf("Both ends are %q.", c.To.Text)).In(c.Decl)
			continue
		}
		for _, end := range []CableEnd{c.From, c.To} {
			if end.Text == "" {
				continue
			}
			if first, dup := taken[end.Text]; dup {
				l.diags.Add("port.duplicate", end.Range, "Two cables in one port", fmt.Sprintf("Port %q has another cable already.", end.Text)).Also("the other one", first.Range).In(c.Decl)
				continue
			}
			taken[end.Text] = end
		}
	}
}
